// biome-ignore-all lint/suspicious/noControlCharactersInRegex: these are what it is about.

/** Control characters, and those that turn round the direction in which a terminal shows what follows. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/** The same but for line ends, tabs and the colours that we use ourselves. */
const UNASKED =
  /(\u001b\[(?:1|2|22|3[0-79]|90)m)|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** One line with every control character spelt out: plugins write into logs, and must not move the cursor or forge a line. */
export function spelledOut(text: string): string {
  return text.replace(CONTROL, spell);
}

/**
 * What goes to a terminal: senders of webhooks, plugins and hosts have a say in it, and must not clear the screen, set the
 * title, hide what follows or answer in our place.
 */
export function harmless(text: string): string {
  return text.replace(UNASKED, (character, colour?: string) => colour ?? spell(character));
}

/** A text of elsewhere within a line of ours. */
export function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}

function spell(character: string): string {
  const code = character.charCodeAt(0);
  if (character === '\n') return '\\n';
  return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, '0')}`;
}
