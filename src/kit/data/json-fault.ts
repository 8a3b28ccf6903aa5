const SPACE = /[ \t\n\r]*/y;
const TOKEN =
  /(?:([{}[\],:])|("(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*")|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])|$)/y;

/** Kinds of tokens that a JSON text may have at a position. */
type Expected = 'value' | 'item or end' | 'key' | 'key or end' | 'colon' | 'comma or end';

/**
 * Returns the offset of the first syntax error of a JSON text, or undefined if the text is valid. `JSON.parse` reports
 * no offset for most errors.
 */
export function jsonFaultOffset(text: string): number | undefined {
  const open: Array<'{' | '['> = [];
  let expected: Expected = 'value';
  for (let at = 0; ; ) {
    SPACE.lastIndex = at;
    SPACE.test(text);
    const start = SPACE.lastIndex;
    TOKEN.lastIndex = start;
    const token = TOKEN.exec(text);
    if (!token) return start;
    if (start === text.length)
      return open.length === 0 && expected === 'comma or end' ? undefined : text.length;
    const next = after(expected, { mark: token[1], isText: token[2] !== undefined }, open);
    if (!next) return start;
    expected = next;
    at = TOKEN.lastIndex;
  }
}

/** Returns the tokens expected after a token, and updates the open brackets. Returns undefined for a syntax error. */
function after(
  expected: Expected,
  { mark, isText }: { mark: string | undefined; isText: boolean },
  open: Array<'{' | '['>,
): Expected | undefined {
  switch (expected) {
    case 'colon':
      return mark === ':' ? 'value' : undefined;
    case 'key':
    case 'key or end':
      if (isText) return 'colon';
      return expected === 'key or end' && mark === '}' ? closed('{', open) : undefined;
    case 'comma or end':
      if (mark === ',' && open.length > 0) return open.at(-1) === '{' ? 'key' : 'value';
      if (mark === '}') return closed('{', open);
      return mark === ']' ? closed('[', open) : undefined;
    default:
      if (mark === undefined) return 'comma or end';
      if (mark === '{' || mark === '[') {
        open.push(mark);
        return mark === '{' ? 'key or end' : 'item or end';
      }
      return expected === 'item or end' && mark === ']' ? closed('[', open) : undefined;
  }
}

function closed(bracket: '{' | '[', open: Array<'{' | '['>): Expected | undefined {
  return open.pop() === bracket ? 'comma or end' : undefined;
}
