/**
 * The corpus files whose runs fail an audit, and why that is true of them.
 *
 * @module
 */

/** By the file's name: kinds of failure, of each of its runs. */
export const CORPUS_FAILURES: Readonly<Record<string, readonly string[]>> = {
  // A command ran into its time limit, and the tool said so.
  "ctf-crypto-katy.traj": ["forbidden_error_signals"],
  "ctf-rev-rock.traj": ["forbidden_error_signals"],
  // Eleven results of calls that the record does not have.
  "log_tool_call_error.json": Array.from({ length: 11 }, () => "tool_call_pairing"),
};
