/**
 * Principals of a tenant.
 *
 * @module
 */
import { z } from "zod";
import type { PrincipalRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { PrincipalIn, PrincipalOut } from "../../shared/api/schemas.ts";
import { formatOrigin } from "../../shared/entry/log-id.ts";
import type { Caller } from "../http/auth.ts";
import { mayUsePrincipal } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { ensurePrincipal } from "../logs/open-log.ts";

function principalOut(caller: Caller, principal: PrincipalRecord): z.infer<typeof PrincipalOut> {
  return {
    id: principal.id,
    name: principal.name,
    generation: principal.generation,
    origin: formatOrigin({
      host: caller.tenant.host,
      tenant: caller.tenant.id,
      principal: principal.id,
      generation: principal.generation,
    }),
    created_at: principal.createdAt,
  };
}

const create = tenantRoute(
  {
    method: "POST",
    path: "/v1/principals",
    operation: "createPrincipal",
    tag: "principals",
    scope: "create",
    summary: "Create a principal; the same name again answers the one that exists",
    body: PrincipalIn,
    answers: {
      201: { description: "created", schema: PrincipalOut },
      200: { description: "it existed", schema: PrincipalOut },
    },
  },
  async ({ env, caller, body }) => {
    if (!mayUsePrincipal(caller, body.name))
      throw new Problem("forbidden", { detail: "the key is not for this principal" });
    const { principal, created } = await ensurePrincipal(env, caller.tenant, body.name, caller.key.id);
    return json(principalOut(caller, principal), created ? 201 : 200);
  },
);

const list = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals",
    operation: "listPrincipals",
    tag: "principals",
    scope: "read",
    summary: "The principals that the key may use, by name",
    query: z.object({
      cursor: z.string().max(128).optional().describe("`next_cursor` of the page before"),
      limit: z.coerce.number().int().min(1).max(1000).default(100),
    }),
    answers: {
      200: {
        description: "a page",
        schema: z.object({ principals: z.array(PrincipalOut), next_cursor: z.string().nullable() }),
      },
    },
  },
  async ({ env, caller, query }) => {
    const page = await env.TENANT_DIRECTORY.getByName(caller.tenant.id).principals(
      query.cursor ?? "",
      query.limit,
    );
    return json({
      principals: page
        .filter(({ name }) => mayUsePrincipal(caller, name))
        .map((one) => principalOut(caller, one)),
      next_cursor: page.length === query.limit ? (page.at(-1)?.name ?? null) : null,
    });
  },
);

export const principalRoutes: readonly Route[] = [create, list];
