/**
 * Texts that would be structure where they are shown, if nobody escaped them.
 *
 * @module
 */
import fc from "fast-check";

export const texts = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc
    .array(fc.constantFrom(..."|`<>&\"'*_[]()!#@\\~\n\r\u0000\u001b\u202e\ud800\ufffe:/.w1a ".split("")), {
      maxLength: 40,
    })
    .map((characters) => characters.join("")),
  fc.constantFrom(
    "https://evil.example/x",
    "www.evil.example",
    "@octocat",
    "#1",
    "<img src=x>",
    "| a | b |",
    "```",
    "&lt;",
  ),
);
