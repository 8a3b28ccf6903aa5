import { nestsDeeperThan } from '../data/json.ts';
import { PlatformError } from '../errors/errors.ts';

export interface JsonSyntaxError {
  message: string;
  /** Both start at 1. */
  line: number;
  column: number;
}

const MAX_DEPTH = 100;

/** Parses the text of a config file. Throws CONFIG_PARSE_ERROR with line and column. @spec Platform codes */
export function parseConfigText(text: string, file: string): unknown {
  const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (nestsDeeperThan(source, MAX_DEPTH)) {
    throw new PlatformError('CONFIG_PARSE_ERROR', `${file} is nested deeper than ${MAX_DEPTH} levels.`, {
      details: { file },
    });
  }
  try {
    return JSON.parse(source);
  } catch (error) {
    const { message, line, column } = locateSyntaxError(source);
    throw new PlatformError(
      'CONFIG_PARSE_ERROR',
      `${file}:${line}:${column} is not valid JSON: ${message}.`,
      {
        details: { file, line, column },
        cause: error,
      },
    );
  }
}

/** Finds the first syntax error in text that JSON.parse rejected; the engine's own message often has no position. */
function locateSyntaxError(text: string): JsonSyntaxError {
  const scanner = createScanner(text);
  const scanError = scanner.findError() ?? { offset: text.length, message: 'unexpected end of text' };
  const before = text.slice(0, scanError.offset).split('\n');
  return { message: scanError.message, line: before.length, column: before.at(-1)!.length + 1 };
}

class ScanError {
  readonly offset: number;
  readonly message: string;
  constructor(offset: number, message: string) {
    this.offset = offset;
    this.message = message;
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these inside a string
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const LITERAL = /true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

function createScanner(text: string): { findError(): ScanError | null } {
  let at = 0;

  function take(pattern: RegExp): boolean {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found !== null;
  }
  function fail(message: string): never {
    if (text.startsWith('//', at) || text.startsWith('/*', at))
      throw new ScanError(at, 'JSON does not allow comments');
    throw new ScanError(at, at >= text.length ? 'unexpected end of text' : message);
  }
  function string(expected: string): void {
    if (text[at] !== '"') fail(`expected ${expected}`);
    if (!take(STRING))
      fail('this string is not closed on its line, or contains a character that must be escaped');
  }
  function value(): void {
    take(SPACE);
    if (text[at] === '{') list('}', member);
    else if (text[at] === '[') list(']', value);
    else if (text[at] === '"') string('a string');
    else if (!take(NUMBER) && !take(LITERAL)) fail('expected a value');
    take(SPACE);
  }
  function member(): void {
    take(SPACE);
    string('a key in double quotes');
    take(SPACE);
    if (text[at] !== ':') fail('expected ":" after the key');
    at++;
    value();
  }
  function list(close: string, item: () => void): void {
    at++;
    take(SPACE);
    if (text[at] === close) {
      at++;
      return;
    }
    for (;;) {
      item();
      if (text[at] === close) {
        at++;
        return;
      }
      if (text[at] !== ',') fail(`expected "," or "${close}"`);
      const comma = at++;
      take(SPACE);
      if (text[at] === close) throw new ScanError(comma, `a trailing comma before "${close}" is not allowed`);
    }
  }
  return {
    findError() {
      try {
        value();
        return at < text.length ? new ScanError(at, 'unexpected text after the end') : null;
      } catch (error) {
        if (error instanceof ScanError) return error;
        throw error;
      }
    },
  };
}
