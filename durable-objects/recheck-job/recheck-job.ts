/**
 * A re-check job (docs/recheck.md, "Jobs"): a selection of a tenant's runs under a policy, done in slices by alarm. After
 * a restart it goes on where it was. This file is its RPC surface and its clockwork.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { equalSecret, fromHex } from "../../shared/bytes.ts";
import type { SummaryState } from "../../shared/recheck/summary.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { OpenedPolicy } from "../../workers/policies/engine.ts";
import { reopenPolicy } from "../../workers/policies/reopen.ts";
import { codeOf, isRefusal } from "./failures.ts";
import { finishJob, indexJob } from "./finish.ts";
import { coveredLogs, principalsWithoutRuns, totalRuns } from "./report.ts";
import { resolveLogs } from "./resolve.ts";
import { recheckRuns } from "./slice.ts";
import { JobStorage } from "./storage.ts";
import type { GivenReport, JobRequest, JobView, LinesPage, StartOutcome } from "./types.ts";
import { isEnd } from "./types.ts";

/** Milliseconds and evaluations after which a slice makes room for others. */
const SLICE_MS = 250;
const SLICE_EVALUATIONS = 5_000;
/** Logs whose bounds one slice fixes at least: a job over few logs is fixed when its start is answered. */
const SLICE_LOGS = 20;
/** Pause after a slice: as long as it took, within these. Half of the time is everybody else's. */
const MIN_PAUSE_MS = 10;
const MAX_PAUSE_MS = 1_000;
/** An alarm of last resort, for a slice that dies. */
const WATCHDOG_MS = 60_000;
/** Pauses after slices that came to nothing, and how many in a row end the job. */
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
const MAX_ATTEMPTS = 20;
/** Heads that a view shows. */
const SHOWN_HEADS = 100;
/** Characters of lines that one call answers, but for a single line. */
const MAX_PAGE_CHARS = 1024 * 1024;

export class RecheckJob extends DurableObject<Env> {
  readonly #storage: JobStorage;
  #opened: OpenedPolicy | null = null;
  readonly #specs = new Map<string, string>();
  #working: Promise<void> | null = null;
  readonly #waiting = new Set<() => void>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#storage = new JobStorage(ctx.storage);
    void ctx.blockConcurrencyWhile(async () => {
      if (this.#over) return;
      // No slice is at work in an object that starts: an alarm that was lost, or the watchdog of a slice that died, need
      // not be waited for.
      const at = await ctx.storage.getAlarm();
      if (at === null || at > Date.now() + LAST_RETRY_MS / 2) await ctx.storage.setAlarm(Date.now());
    });
  }

  /** Starts the job, once; answers after the first bounds are fixed, which for a few logs is all of them. */
  async start(request: JobRequest): Promise<StartOutcome> {
    const before = this.again(request.fingerprint);
    if (before !== null) return before;
    this.#storage.create(request);
    await this.ctx.storage.setAlarm(Date.now() + WATCHDOG_MS);
    await this.#work();
    return { ok: true, view: this.#view(), repeated: false };
  }

  /** The job that this request started before; null where there is none yet. */
  again(fingerprint: string): StartOutcome | null {
    if (!this.#storage.exists) return null;
    if (!equalSecret(fromHex(this.#storage.request().fingerprint), fromHex(fingerprint)))
      return { ok: false, code: "idempotency-mismatch" };
    return { ok: true, view: this.#view(), repeated: true };
  }

  /** Takes a report that was made elsewhere and makes it evidence. Answers the job as it then stands. */
  async adopt(request: JobRequest, given: GivenReport): Promise<StartOutcome> {
    const before = this.again(request.fingerprint);
    if (before !== null) return before;
    this.#storage.create(request);
    this.#storage.transaction(() => {
      this.#storage.addLog(given.log, [], null);
      this.#storage.commitRun(
        {
          status: "finishing",
          end: "complete",
          finishedAt: request.createdAt,
          reportHash: given.reportHash,
          runsDone: 1,
        },
        JSON.parse(given.summary) as SummaryState,
        given.line,
      );
    });
    await this.ctx.storage.setAlarm(Date.now() + WATCHDOG_MS);
    await this.#work();
    return { ok: true, view: this.#view(), repeated: false };
  }

  /** The job as it stands; null where there is none. */
  view(): JobView | null {
    return this.#storage.exists ? this.#view() : null;
  }

  /** The same, once it is at its end or the time is over. */
  async wait(milliseconds: number): Promise<JobView | null> {
    if (!this.#storage.exists) return null;
    const until = Date.now() + milliseconds;
    for (
      let left = milliseconds;
      left > 0 && !isEnd(this.#storage.state().status);
      left = until - Date.now()
    ) {
      const ended = new Promise<void>((resolve) => this.#waiting.add(resolve));
      await Promise.race([ended, scheduler.wait(left)]);
    }
    return this.#view();
  }

  /** Ends the job where it is. One that is at its end already stays as it is. */
  async cancel(): Promise<JobView | null> {
    if (!this.#storage.exists) return null;
    const { status, end } = this.#storage.state();
    if (end === "" && (status === "resolving" || status === "running")) {
      this.#storage.move({ end: "cancelled", reason: "cancelled" });
      await this.ctx.storage.setAlarm(Date.now());
    }
    return this.#view();
  }

  /** Lines of the runs that are done, after number `after`; those alone that say more than "same" unless `all`. */
  lines(after: number, all: boolean): LinesPage | null {
    if (!this.#storage.exists) return null;
    const lines: string[] = [];
    let chars = 0;
    let next = after;
    for (const { n, text } of this.#storage.lines(after, all)) {
      chars += text.length;
      if (lines.length > 0 && chars > MAX_PAGE_CHARS) return { lines, next };
      lines.push(text);
      next = n;
    }
    return { lines, next: null };
  }

  /** A slice. Nothing may be thrown from here: the platform gives up after six times. */
  override async alarm(): Promise<void> {
    if (this.#storage.exists) await this.#work();
  }

  get #over(): boolean {
    if (!this.#storage.exists) return true;
    const { status, listed } = this.#storage.state();
    return isEnd(status) && listed;
  }

  /** One slice at a time, whoever asks for it. */
  #work(): Promise<void> {
    this.#working ??= this.#slice().finally(() => {
      this.#working = null;
    });
    return this.#working;
  }

  async #slice(): Promise<void> {
    const storage = this.#storage;
    if (this.#over) return;
    let pause: number;
    const begun = Date.now();
    try {
      await this.ctx.storage.setAlarm(begun + WATCHDOG_MS);
      storage.move({ attempts: storage.state().attempts + 1 });
      await this.#step(begun);
      storage.move({ attempts: 0 });
      pause = Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, Date.now() - begun));
    } catch (error) {
      pause = this.#failed(error);
    }
    if (isEnd(storage.state().status)) {
      this.#close();
      for (const resolve of this.#waiting) resolve();
      this.#waiting.clear();
    }
    try {
      if (this.#over) await this.ctx.storage.deleteAlarm();
      else await this.ctx.storage.setAlarm(Date.now() + pause);
    } catch {
      // The watchdog is set.
    }
  }

  /** What comes next for the job. */
  async #step(begun: number): Promise<void> {
    const { env } = this;
    const storage = this.#storage;
    const request = storage.request();
    const state = storage.state();
    const late = () => Date.now() - begun > SLICE_MS;
    if (state.status === "resolving") {
      if (state.resolved === "") await indexJob(env, storage, request);
      const deadline = (logs: number) => logs >= SLICE_LOGS && late();
      if (await resolveLogs(env, storage, request, deadline)) this.#leave(request);
    } else if (state.status === "running") {
      const { policy } = await this.#open(request);
      const deadline = (evaluations: number) => late() || evaluations > SLICE_EVALUATIONS;
      if (await recheckRuns({ env, storage, request, policy, specs: this.#specs, deadline }))
        this.#leave(request);
    } else if (state.status === "finishing") {
      await finishJob(env, storage, request);
      await this.#list(request);
    } else {
      await this.#list(request);
    }
  }

  /** Tells the list how the job ended. */
  async #list(request: JobRequest): Promise<void> {
    await indexJob(this.env, this.#storage, request);
    this.#storage.move({ listed: true });
  }

  /** From one stage to the next. */
  #leave(request: JobRequest): void {
    this.#storage.transaction(() => {
      const { status, end } = this.#storage.state();
      if (end === "" && status === "resolving") this.#storage.move({ status: "running" });
      else if (end !== "") {
        this.#storage.move({ status: "finishing", finishedAt: new Date().toISOString(), attempts: 0 });
        logEvent("recheck-ended", { tenant: request.tenant.id, job: request.id, status: end });
      }
    });
  }

  /** After a slice that came to nothing: the pause before the next one. */
  #failed(error: unknown): number {
    const storage = this.#storage;
    const code = codeOf(error);
    this.#close();
    const { attempts, status, end } = storage.state();
    logEvent("recheck-slice-failed", { code, attempts, status });
    // A report has to become evidence, however long that takes; before that, a job that gets nowhere ends.
    if (end === "" && (isRefusal(error) || attempts >= MAX_ATTEMPTS)) {
      storage.move({ end: "failed", reason: code });
      this.#leave(storage.request());
      return MIN_PAUSE_MS;
    }
    return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts - 1, 10));
  }

  async #open({ tenant, policy }: JobRequest): Promise<OpenedPolicy> {
    this.#opened ??= await reopenPolicy(this.env, tenant.id, policy);
    return this.#opened;
  }

  #close(): void {
    this.#opened?.close();
    this.#opened = null;
  }

  #view(): JobView {
    const storage = this.#storage;
    const { id, createdAt, policy, selection, budget } = storage.request();
    const { status, reason, finishedAt, reportHash, runsDone, evaluations } = storage.state();
    const { reference: _reference, currentTools: _tools, ...shown } = policy;
    const fixed = status !== "resolving";
    const heads = [];
    for (const { runs: _runs, ...log } of coveredLogs(storage, selection.newest)) {
      if (heads.push(log) >= SHOWN_HEADS) break;
    }
    return {
      id,
      status,
      reason,
      createdAt,
      finishedAt,
      policy: shown,
      selection,
      budget,
      progress: {
        logs: storage.logCount(),
        runsDone,
        runsTotal: fixed ? totalRuns(storage, selection.newest) : null,
        evaluations,
      },
      summary: storage.summaryText(),
      withoutRuns: fixed ? principalsWithoutRuns(storage, selection) : [],
      heads,
      keyPrincipals: selection.principals?.map(({ name }) => name) ?? storage.request().keyPrincipals,
      reportHash: isEnd(status) ? reportHash : null,
    };
  }
}
