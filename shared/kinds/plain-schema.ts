/**
 * Zod's own JSON Schema of a type, without what is said twice.
 *
 * @module
 */
import { z } from "zod";

export type JsonSchema = Readonly<Record<string, unknown>>;

export function plainSchema(type: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(type, {
    override: ({ jsonSchema }) => {
      if (jsonSchema.type === "integer") delete jsonSchema.multipleOf;
    },
  });
  return schema;
}
