/**
 * A small HTTP client for tests against a running server.
 *
 * @module
 */

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON. Throws where it is none. */
  json<T = Record<string, unknown>>(): T;
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are; anything else as JSON. */
  readonly body?: unknown;
}

export class TestClient {
  readonly #url: string;
  readonly #token: string | undefined;

  /**
   * @param url without a slash at the end
   * @param token bearer token; none where it is absent
   */
  constructor(url: string, token?: string) {
    this.#url = url;
    this.#token = token;
  }

  /** Sends a request, and reads the answer to its end. */
  async send(method: string, path: string, { headers, body }: RequestOptions = {}): Promise<Answer> {
    const raw = typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: (raw ? body : JSON.stringify(body)) as BodyInit }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: <T>() => JSON.parse(text) as T,
    };
  }

  get(path: string, options?: RequestOptions): Promise<Answer> {
    return this.send("GET", path, options);
  }

  post(path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.send("POST", path, { body, headers });
  }
}
