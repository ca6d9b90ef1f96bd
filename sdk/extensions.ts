/**
 * Kinds of a tenant's own, from a client's side (docs/kinds.md, "Your own kinds"): to declare what entries of them
 * hold, and to see what is declared.
 *
 *     const extensions = new Extensions(client);
 *     const { version, isNew } = await extensions.declare("acme", { kinds: { "refund.made": { action: schema } } });
 *
 * @module
 */
import type { z } from "zod";
import type { DeclarationOut, ExtensionOut, ExtensionsOut } from "../shared/api/extensions.ts";
import type { Declaration } from "../shared/kinds/declaration.ts";
import type { RunsealClient } from "./client.ts";

export type { Declaration } from "../shared/kinds/declaration.ts";
/** A version of what is declared under a prefix. */
export type DeclaredVersion = z.infer<typeof DeclarationOut>;
/** The same, with the names of its kinds. */
export type DeclaredPrefix = z.infer<typeof ExtensionsOut>["extensions"][number];

export class Extensions {
  readonly #client: RunsealClient;

  constructor(client: RunsealClient) {
    this.#client = client;
  }

  /**
   * Declares the kinds under a prefix in place of those before. The same again changes nothing.
   *
   * @param declaration as JSON text where its numbers are to keep their digits
   * @returns the version that has this content; `isNew` where this call made it
   * @throws `ProblemError`, with a pointer in its problem
   */
  async declare(
    prefix: string,
    declaration: Declaration | string,
  ): Promise<DeclaredVersion & { readonly isNew: boolean }> {
    const body = typeof declaration === "string" ? declaration : JSON.stringify(declaration);
    const response = await this.#client.request("PUT", pathOf(prefix), { body });
    return { ...((await response.json()) as DeclaredVersion), isNew: response.status === 201 };
  }

  /** What is declared under each prefix, by prefix. */
  async list(): Promise<readonly DeclaredPrefix[]> {
    return (await this.#client.json<z.infer<typeof ExtensionsOut>>("GET", "/v1/extensions")).extensions;
  }

  /** The version that holds under a prefix, or the one asked for. Throws `ProblemError` where there is none. */
  get(prefix: string, version?: number): Promise<z.infer<typeof ExtensionOut>> {
    return this.#client.json("GET", pathOf(prefix) + (version === undefined ? "" : `?version=${version}`));
  }
}

function pathOf(prefix: string): string {
  return `/v1/extensions/${encodeURIComponent(prefix)}`;
}
