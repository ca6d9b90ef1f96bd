/**
 * Tells the service's sums what a tenant's are: some seconds after they changed, at most once in that time.
 *
 * @module
 */
import { logEvent } from "../../workers/log-event.ts";

/** How old a tenant's sums may be where the service's are read. */
const REPORT_INTERVAL_MS = 10_000;
const RETRY_INTERVAL_MS = 60_000;

export class TotalsReporter {
  readonly #storage: DurableObjectStorage;
  readonly #send: () => Promise<void>;
  /** Whether the object's alarm is set; null where that is not known. */
  #armed: boolean | null = null;

  /** @param send reports the sums as they are */
  constructor(storage: DurableObjectStorage, send: () => Promise<void>) {
    this.#storage = storage;
    this.#send = send;
  }

  /** The sums changed. Never throws. */
  async changed(): Promise<void> {
    await this.#arm(REPORT_INTERVAL_MS);
  }

  /** The alarm went off. Nothing may be thrown from here: the platform would give up after six. */
  async alarm(): Promise<void> {
    this.#armed = false;
    try {
      await this.#send();
    } catch {
      logEvent("totals-report-failed");
      await this.#arm(RETRY_INTERVAL_MS);
    }
  }

  async #arm(inMs: number): Promise<void> {
    if (this.#armed === true) return;
    const known = this.#armed;
    this.#armed = true;
    try {
      if (known === null && (await this.#storage.getAlarm()) !== null) return;
      await this.#storage.setAlarm(Date.now() + inMs);
    } catch {
      // The next change tries again.
      this.#armed = null;
    }
  }
}
