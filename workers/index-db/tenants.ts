/**
 * D1's rows of a tenant and its registry.
 *
 * @module
 */
import type { PublishedRecord } from "../../durable-objects/key-registry/types.ts";
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";

/** Writes them; the same again changes nothing. Throws what D1 throws. */
export async function indexTenant(
  db: D1Database,
  tenant: TenantRecord,
  records: readonly PublishedRecord[],
): Promise<void> {
  await db.batch([
    db
      .prepare("INSERT INTO tenants VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
      .bind(tenant.id, tenant.name, tenant.registryId, tenant.createdAt),
    ...records.map(({ epoch, record, signatures }) =>
      db
        .prepare("INSERT INTO registry_records VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
        .bind(tenant.id, epoch, record, JSON.stringify(signatures)),
    ),
  ]);
}
