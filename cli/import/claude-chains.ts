/**
 * The chains of a Claude Code session. The lines are a tree (`parentUuid`); lines marked `isSidechain` belong to
 * subagents, and each tree of them under its own root is a run of its own. Branches of the main conversation (the
 * user went back and asked again) stay in the order of the file: all of it happened.
 *
 * @module
 */
import { at, type JsonObject, textAt } from "./tree.ts";

/** A line of the file that is an object, numbered from 1. */
export interface SessionLine {
  readonly number: number;
  readonly entry: JsonObject;
}

/** One run: the main conversation of a session, or one subagent. */
export interface Chain {
  readonly session: string | undefined;
  /** A subagent's name within the session; undefined for the main conversation. */
  readonly sidechain: string | undefined;
  readonly lines: SessionLine[];
  /** Subagents by the number of the main line before which they began; 0 for those after the last one. */
  readonly spawns: Map<number, Chain[]>;
}

/** The chains in the order in which they begin, subagents after the conversation that they belong to. */
export function chainsOf(lines: readonly SessionLine[]): Chain[] {
  const byUuid = new Map<string, SessionLine>();
  for (const line of lines) {
    const uuid = textAt(line.entry, "uuid");
    if (uuid !== undefined && !byUuid.has(uuid)) byUuid.set(uuid, line);
  }
  const mains = new Map<string | undefined, Chain>();
  const sides = new Map<string, Chain>();
  let current: string | undefined;
  for (const line of lines) {
    // Summaries carry no session id: they stay with the session around them.
    current = textAt(line.entry, "sessionId") ?? current ?? firstSession(lines);
    const main = mains.get(current) ?? newChain(current, undefined);
    mains.set(current, main);
    if (at(line.entry, "isSidechain") !== true) {
      main.lines.push(line);
      continue;
    }
    const name = textAt(line.entry, "agentId") ?? rootOf(line, byUuid);
    const key = JSON.stringify([current, name]);
    const side = sides.get(key) ?? newChain(current, name);
    sides.set(key, side);
    side.lines.push(line);
  }
  const chains: Chain[] = [];
  for (const main of mains.values()) {
    const own = [...sides.values()].filter((side) => side.session === main.session);
    for (const side of own) placeSpawn(main, side);
    if (main.lines.length > 0) chains.push(main);
    chains.push(...own);
  }
  return chains;
}

function newChain(session: string | undefined, sidechain: string | undefined): Chain {
  return { session, sidechain, lines: [], spawns: new Map() };
}

function firstSession(lines: readonly SessionLine[]): string | undefined {
  for (const { entry } of lines) {
    const session = textAt(entry, "sessionId");
    if (session !== undefined) return session;
  }
  return undefined;
}

/** The uuid of the highest sidechain ancestor that the file has. A cycle ends where it began. */
function rootOf(line: SessionLine, byUuid: ReadonlyMap<string, SessionLine>): string {
  let root = line;
  const seen = new Set<SessionLine>();
  while (!seen.has(root)) {
    seen.add(root);
    const parent = byUuid.get(textAt(root.entry, "parentUuid") ?? "");
    if (parent === undefined || at(parent.entry, "isSidechain") !== true) break;
    root = parent;
  }
  return textAt(root.entry, "uuid") ?? `line-${root.number}`;
}

/** The main line that follows the subagent's first one says when it was spawned. */
function placeSpawn(main: Chain, side: Chain): void {
  const begin = side.lines[0]?.number ?? 0;
  const next = main.lines.find((line) => line.number > begin)?.number ?? 0;
  main.spawns.set(next, [...(main.spawns.get(next) ?? []), side]);
}
