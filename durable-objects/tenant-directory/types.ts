/**
 * What a tenant's directory keeps and answers.
 *
 * @module
 */
import type { IndexWitness } from "./index-state.ts";
import type { LimitScope, Limits } from "./limits.ts";

export interface TenantRecord {
  /** 16 bytes of hex. */
  readonly id: string;
  readonly name: string;
  readonly host: string;
  /** 32 bytes of hex. */
  readonly registryId: string;
  /** RFC 3339. */
  readonly createdAt: string;
}

/** An API key without its secret. */
export interface ApiKeyRecord {
  /** 16 bytes of hex: the credential id in the leaves that it submitted. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Names of principals, or `*`. */
  readonly principals: readonly string[];
  /** Null: none of its own. */
  readonly limits: Limits | null;
  readonly createdAt: string;
  readonly revokedAt: string | null;
}

export interface PrincipalRecord {
  readonly name: string;
  /** 16 bytes of hex. */
  readonly id: string;
  readonly generation: number;
  readonly createdAt: string;
}

/** The principal that is there now; or the scope whose limit of principals is reached. */
export type EnsuredPrincipal =
  | { readonly principal: PrincipalRecord; readonly created: boolean }
  | { readonly refused: LimitScope };

/** A log that may have entries which D1 lacks. */
export interface DirtyLog {
  readonly name: string;
  readonly principal: string;
  readonly generation: number;
}

/** What a reader of the whole tenant has to know of the index. */
export interface IndexView {
  readonly dirty: readonly DirtyLog[];
  readonly witness: IndexWitness | null;
  /** While the index is filled again nothing can be read from it. */
  readonly rebuilding: boolean;
  /** Objects that the rebuild refused, the one that runs or the last one. */
  readonly refused: number;
}
