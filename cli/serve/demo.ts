/**
 * The way to the demo's story, which lives in cli/demo/.
 *
 * @module
 */
export interface DemoOptions {
  readonly url: string;
  readonly operatorToken: string;
  /** Where the server keeps its state; the story alters a copy of it. */
  readonly stateDir: string;
  readonly log: (line: string) => void;
}

/** Resolves to whether every step of the story held. */
export type RunDemo = (options: DemoOptions) => Promise<boolean>;

/** Not a literal, so that the type checker does not ask for a file that may not be there yet. */
const STORY: string = "../demo/story.ts";

/** Loads the story, and nothing of it before it is told. */
export async function loadDemo(): Promise<RunDemo> {
  const { runDemo } = (await import(STORY)) as { runDemo: RunDemo };
  return runDemo;
}
