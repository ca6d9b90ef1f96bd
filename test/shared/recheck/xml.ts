/**
 * A small strict reader of XML without namespaces, comments and text: it throws for anything that is not well-formed.
 *
 * @module
 */

export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlElement[];
}

/** XML 1.0 "Char": anything else may not be there, not even as a reference. */
const CHARACTERS = /^(?:[\t\n\r\u0020-\ud7ff\ue000-\ufffd]|[\ud800-\udbff][\udc00-\udfff])*$/;
const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function decoded(text: string): string {
  if (/[<]/.test(text)) throw new Error("a raw < in a text");
  return text.replaceAll(/&([^;]*;?)/g, (_, reference: string) => {
    const character = reference.endsWith(";") ? NAMED[reference.slice(0, -1)] : undefined;
    if (character === undefined) throw new Error(`a reference that is none: &${reference}`);
    return character;
  });
}

/** The root element. */
export function parseXml(text: string): XmlElement {
  if (!CHARACTERS.test(text)) throw new Error("a character that XML does not have");
  const root: XmlElement = { name: "", attributes: {}, children: [] };
  const open: XmlElement[] = [root];
  let at = 0;
  const declaration = /^<\?xml version="1.0" encoding="UTF-8"\?>\n/.exec(text);
  if (declaration !== null) at = declaration[0].length;
  while (at < text.length) {
    const top = open.at(-1) as XmlElement;
    const tag = /^<(\/?)([A-Za-z][A-Za-z-]*)((?: [a-z_]+="[^"<]*")*)(\/?)>/.exec(text.slice(at));
    if (tag === null) {
      const between = /^[^<]+/.exec(text.slice(at));
      if (between === null) throw new Error(`no tag at ${at}: ${text.slice(at, at + 80)}`);
      decoded(between[0]);
      at += between[0].length;
      continue;
    }
    at += tag[0].length;
    const [, closing, name = "", attributeText = "", selfClosing] = tag;
    if (closing === "/") {
      if (top.name !== name) throw new Error(`${name} closes ${top.name}`);
      open.pop();
      continue;
    }
    const attributes: Record<string, string> = {};
    for (const [, key = "", value = ""] of attributeText.matchAll(/ ([a-z_]+)="([^"]*)"/g)) {
      if (key in attributes) throw new Error(`${key} twice`);
      attributes[key] = decoded(value);
    }
    const element: XmlElement = { name, attributes, children: [] };
    top.children.push(element);
    if (selfClosing !== "/") open.push(element);
  }
  if (open.length !== 1 || root.children.length !== 1) throw new Error("not one element");
  return root.children[0] as XmlElement;
}
