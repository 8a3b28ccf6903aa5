/** First mistake in a text that is not JSON. */
export interface JsonProblem {
  offset: number;
  /** Length of the wrong part. 0 at the end of the text. */
  length: number;
  /** Place and mistake in words, such as `Line 2, column 5: a colon is missing.` */
  message: string;
}

/** What may come next: in an object `name` and `colon`, in an array or object `next`, after the whole value `end`. */
type Expected = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'next' | 'end';

const BLANK = /[\t\n\r ]*/y;
/** Beginning of a string: all characters except controls, quotes and backslashes, and escape sequences. */
const STRING_START = /"[ !#-[\]-\u{10ffff}]*(?:\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})[ !#-[\]-\u{10ffff}]*)*/uy;
const TOKEN = new RegExp(
  `[{}[\\],:]|${STRING_START.source}"|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[Ee][+-]?\\d+)?|true|false|null`,
  'uy',
);
const WORD = /[\p{L}\p{N}_$.+-]+|./suy;

/** Returns the first mistake of a text, or undefined for JSON. */
export function jsonProblem(text: string): JsonProblem | undefined {
  const open: string[] = [];
  let expected: Expected = 'value';
  let offset = matchedAt(BLANK, text, 0).length;
  while (expected !== 'end' || offset < text.length) {
    const token = matchedAt(TOKEN, text, offset);
    const next: Expected | undefined = token === '' ? undefined : after(expected, token, open);
    if (!next) return problemAt(text, offset, expected, open);
    expected = next;
    offset += token.length;
    offset += matchedAt(BLANK, text, offset).length;
  }
  return undefined;
}

function matchedAt(pattern: RegExp, text: string, offset: number): string {
  pattern.lastIndex = offset;
  return pattern.exec(text)?.[0] ?? '';
}

/** Returns what may follow the token, or undefined if the token is not expected. Updates the stack of open brackets. */
function after(expected: Expected, token: string, open: string[]): Expected | undefined {
  const inside = open.at(-1);
  const isClosing = (token === '}' && inside === '{') || (token === ']' && inside === '[');
  if (isClosing && (expected === 'next' || expected.startsWith('first'))) {
    open.pop();
    return open.length === 0 ? 'end' : 'next';
  }
  if (expected === 'colon') return token === ':' ? 'value' : undefined;
  if (expected === 'next' && token === ',') return inside === '{' ? 'name' : 'value';
  if (expected === 'name' || expected === 'first name') return token.startsWith('"') ? 'colon' : undefined;
  if (expected !== 'value' && expected !== 'first value') return undefined;
  if (token === '{' || token === '[') {
    open.push(token);
    return token === '{' ? 'first name' : 'first value';
  }
  if ('}],:'.includes(token)) return undefined;
  return open.length === 0 ? 'end' : 'next';
}

function problemAt(text: string, start: number, expected: Expected, open: readonly string[]): JsonProblem {
  const isString = text[start] === '"' && !['colon', 'next', 'end'].includes(expected);
  const offset = isString ? start + matchedAt(STRING_START, text, start).length : start;
  const mistake = isString ? stringMistake(text, offset) : `expected ${expectedWords(expected, open)}`;
  const lines = text.slice(0, offset).split(/\r\n|\r|\n/);
  const place = `Line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
  return { offset, length: matchedAt(WORD, text, offset).length, message: `${place}: ${mistake}.` };
}

/** Names signs in words, because screen readers leave signs out. */
function expectedWords(expected: Expected, open: readonly string[]): string {
  const closing = open.at(-1) === '{' ? 'a closing brace }' : 'a closing bracket ]';
  switch (expected) {
    case 'value':
      return 'a value';
    case 'name':
      return 'a name in double quotes';
    case 'first value':
      return `a value or ${closing}`;
    case 'first name':
      return `a name in double quotes or ${closing}`;
    case 'colon':
      return 'a colon after the name';
    case 'next':
      return `a comma or ${closing}`;
    case 'end':
      return 'the end of the text';
  }
}

function stringMistake(text: string, offset: number): string {
  const char = text[offset];
  if (char === undefined || char === '\n' || char === '\r')
    return 'expected a double quote at the end of the string';
  if (char === '\\')
    return 'a backslash must be followed by " \\ / b f n r t or u with four hexadecimal digits';
  return 'a control character must be written as \\u with four hexadecimal digits';
}
