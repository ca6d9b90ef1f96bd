/**
 * The little of the DOM that the page uses. The project is typed for the Worker's runtime, which has no document.
 *
 * @module
 */

export interface PageEvent {
  preventDefault(): void;
  readonly dataTransfer?: { readonly files: ArrayLike<File> };
}

export interface PageElement {
  textContent: string | null;
  hidden: boolean;
  className: string;
  addEventListener(type: string, listener: (event: PageEvent) => void): void;
  append(...children: (PageElement | string)[]): void;
  replaceChildren(...children: (PageElement | string)[]): void;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  focus(): void;
}

export interface PageInput extends PageElement {
  value: string;
  disabled: boolean;
  readonly files: ArrayLike<File> | null;
}

export interface PageProgress extends PageElement {
  value: number;
  max: number;
}

interface PageDocument {
  readonly body: PageElement;
  getElementById(id: string): PageElement | null;
  createElement(name: string): PageElement;
}

const { document } = globalThis as unknown as { document: PageDocument };

export const body: PageElement = document.body;

/** The element with that id, which the page must have. */
export function byId<T extends PageElement = PageElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** A new element with these children. Text is never parsed as HTML. */
export function element(name: string, ...children: (PageElement | string)[]): PageElement {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}
