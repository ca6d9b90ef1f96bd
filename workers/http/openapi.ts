/**
 * /openapi.json, from the routes' own declarations.
 *
 * @module
 */
import { z } from "zod";
import { PROBLEMS } from "../../shared/api/problems.ts";
import { ProblemDocument } from "../../shared/api/schemas.ts";
import { KINDS, kindJsonSchema } from "../../shared/kinds/catalogue.ts";
import type { Route } from "./route.ts";

type JsonSchema = Record<string, unknown>;

function schemaOf(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as JsonSchema;
  return rest;
}

function parameters(route: Route): JsonSchema[] {
  const out: JsonSchema[] = [];
  for (const [where, shape] of [
    ["path", route.params?.shape],
    ["query", route.query?.shape],
  ] as const) {
    for (const [name, field] of Object.entries(shape ?? {})) {
      const schema = schemaOf(field as z.ZodType, "input");
      out.push({
        name,
        in: where,
        required: where === "path" || !(field as z.ZodType).safeParse(undefined).success,
        schema,
      });
    }
  }
  return out;
}

function requestBody(route: Route): JsonSchema | undefined {
  if (route.rawBody !== undefined) {
    const { schema, contentTypes } = route.rawBody;
    return {
      required: true,
      content: Object.fromEntries(
        contentTypes.map((type) => [
          type,
          { schema: type.includes("ndjson") ? { type: "string" } : schemaOf(schema, "input") },
        ]),
      ),
    };
  }
  if (route.body === undefined) return undefined;
  return { required: true, content: { "application/json": { schema: schemaOf(route.body, "input") } } };
}

function responses(route: Route): JsonSchema {
  const out: JsonSchema = {};
  for (const [status, answer] of Object.entries(route.answers)) {
    const type = answer.contentType ?? "application/json";
    out[status] = {
      description: answer.description,
      content: {
        [type]: {
          schema: answer.schema === undefined ? { type: "string" } : schemaOf(answer.schema, "output"),
        },
      },
    };
  }
  out.default = {
    description: "a problem document (RFC 9457); docs/errors.md lists the types",
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
  return out;
}

/** The OpenAPI 3.1 document. */
export function openApiDocument(routes: readonly Route[]): JsonSchema {
  const paths: Record<string, JsonSchema> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/\{(\w+)\+\}/g, "{$1}");
    const body = requestBody(route);
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: {
        operationId: route.operation,
        tags: [route.tag],
        summary: route.summary,
        ...(route.description === undefined ? {} : { description: route.description }),
        ...(route.access === "none" ? { security: [] } : {}),
        "x-runseal-access": route.access,
        parameters: parameters(route),
        ...(body === undefined ? {} : { requestBody: body }),
        responses: responses(route),
      },
    };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Runseal",
      version: "0.1.0",
      description:
        "A multi-tenant, tamper-evident audit log for AI-agent runs. The log proves what was submitted, by which credential, and its order relative to heads kept elsewhere; not that the agent told the truth.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          description: "an API key, or the operator's token where it says operator",
        },
      },
      schemas: {
        Problem: schemaOf(ProblemDocument, "output"),
        ...Object.fromEntries(KINDS.map(({ kind }) => [`Kind.${kind}`, kindJsonSchema(kind)])),
      },
    },
    "x-runseal-problems": Object.fromEntries(
      Object.entries(PROBLEMS).map(([code, { status, title }]) => [code, { status, title }]),
    ),
  };
}
