/**
 * Times as LangBot's tables and its audit's `--created-after` write them: Python's `datetime.fromisoformat`, brought to
 * UTC and compared as text (seed-systems section 2.2).
 *
 * @module
 */
import { PythonFailure, pyRepr } from "./python-value.ts";

const ISO =
  /^(?:(\d{4})-(\d\d)-(\d\d)|(\d{4})(\d\d)(\d\d)|(\d{4})-?W(\d\d)(?:-?(\d))?)(?:[^](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?(?:([+-])(\d\d)(?::?(\d\d)(?::?(\d\d)(?:\.\d+)?)?)?)?)?$/u;
const DAY = 86_400_000;

/**
 * The time as `YYYY-MM-DD HH:MM:SS.ffffff` in UTC; one without an offset is UTC already, and a date alone is its
 * midnight. Such texts are in the order of time. Throws `PythonFailure` with Python's own words.
 */
export function naiveUtcText(text: string): string {
  const iso = text.replaceAll("Z", "+00:00");
  const parts = ISO.exec(iso);
  if (parts === null) throw new PythonFailure(`Invalid isoformat string: ${pyRepr(iso)}`);
  const [, , , , , , , weekYear, week, weekday = "1", hour = "0", minute = "0", second = "0", fraction = ""] =
    parts;
  const day =
    weekYear === undefined
      ? dayOf(Number(parts[1] ?? parts[4]), Number(parts[2] ?? parts[5]), Number(parts[3] ?? parts[6]))
      : dayOfWeek(Number(weekYear), Number(week), Number(weekday));
  if (Number(hour) > 23) throw new PythonFailure("hour must be in 0..23");
  if (Number(minute) > 59) throw new PythonFailure("minute must be in 0..59");
  if (Number(second) > 59) throw new PythonFailure("second must be in 0..59");
  const [, , , , , , , , , , , , , , sign, offsetHour = "0", offsetMinute = "0", offsetSecond = "0"] = parts;
  const offset = Number(offsetHour) * 3600 + Number(offsetMinute) * 60 + Number(offsetSecond);
  if (offset >= DAY / 1000 || Number(offsetMinute) > 59)
    throw new PythonFailure(
      "offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24).",
    );
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second) - (sign === "-" ? -offset : offset);
  const time = new Date(day + seconds * 1000);
  if (time.getUTCFullYear() < 1 || time.getUTCFullYear() > 9999) throw new PythonFailure("date value out of range");
  const whole = time.toISOString();
  return `${whole.slice(0, 10)} ${whole.slice(11, 19)}.${fraction.slice(0, 6).padEnd(6, "0")}`;
}

function dayOf(year: number, month: number, day: number): number {
  if (year < 1) throw new PythonFailure(`year ${year} is out of range`);
  if (month < 1 || month > 12) throw new PythonFailure("month must be in 1..12");
  const time = new Date(0);
  // Date.UTC reads the years 0 to 99 as 1900 to 1999.
  time.setUTCFullYear(year, month - 1, day);
  if (time.getUTCMonth() !== month - 1 || day < 1) throw new PythonFailure("day is out of range for month");
  return time.getTime();
}

/** ISO 8601: week 1 is the one with January 4th, weeks begin on Monday. */
function dayOfWeek(year: number, week: number, weekday: number): number {
  if (week < 1 || week > 53) throw new PythonFailure(`Invalid week: ${week}`);
  if (weekday < 1 || weekday > 7) throw new PythonFailure(`Invalid weekday: ${weekday} (range is [1, 7])`);
  const fourth = dayOf(year, 1, 4);
  const monday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * DAY;
  return monday + ((week - 1) * 7 + weekday - 1) * DAY;
}
