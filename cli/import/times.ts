/**
 * Times of a source. A time is taken only where the source has one and says its zone; none is ever invented, so an
 * entry of a source without times has no `occurred_at`, and order is all that is known (FORMATS.md section 2.7).
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import { isTime, parseTime } from "../../shared/time.ts";
import { textAt } from "./tree.ts";

/** The text where the log accepts it as a time, else undefined. */
export function rfc3339OrAbsent(text: string | undefined): string | undefined {
  return text !== undefined && isTime(text) ? text : undefined;
}

/** The time that a message of the source states about itself. */
export function sourceTime(message: JsonValue | undefined): string | undefined {
  return rfc3339OrAbsent(textAt(message, "timestamp") ?? textAt(message, "created_at"));
}

/** Nanoseconds since the epoch, or undefined where the text is no time. */
export function instantOf(text: string | undefined): bigint | undefined {
  const time = rfc3339OrAbsent(text);
  return time === undefined ? undefined : parseTime(time);
}

/**
 * A time of LangBot's tables, `YYYY-MM-DD HH:MM:SS[.ffffff]`. They hold UTC without saying so,
 * so this is the one place where a zone is added to a source's time.
 */
export function naiveUtc(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const naive = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?)$/.exec(text);
  return rfc3339OrAbsent(naive === null ? text.replace(" ", "T") : `${naive[1]}T${naive[2]}Z`);
}
