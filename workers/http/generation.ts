/**
 * Which generation of a log a request is about. A stopped log is sealed and goes on as its next generation; the sealed
 * one stays to be read, as evidence (docs/operate.md).
 *
 * @module
 */
import { z } from "zod";

export const Generation = z.coerce
  .number()
  .int()
  .min(1)
  .max(999_999_999)
  .describe("a generation of the log that was sealed; the current one where it is absent");
