import { nestsDeeperThan } from '../data/json.ts';
import { PlatformError } from '../errors/errors.ts';

export interface JsonSyntaxError {
  message: string;
  /** Line number. Lines and columns are numbered from 1. */
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

/** Finds the position of the first syntax error. JSON.parse often reports no position. */
function locateSyntaxError(text: string): JsonSyntaxError {
  const scanner = new Scanner(text);
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

/** Parses JSON text up to its first syntax error. */
class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  findError(): ScanError | null {
    try {
      this.#value();
      return this.#at < this.#text.length ? new ScanError(this.#at, 'unexpected text after the end') : null;
    } catch (error) {
      if (error instanceof ScanError) return error;
      throw error;
    }
  }

  #value(): void {
    this.#take(SPACE);
    if (this.#isAt('{')) this.#list('}', () => this.#member());
    else if (this.#isAt('[')) this.#list(']', () => this.#value());
    else if (this.#isAt('"')) this.#string('a string');
    else if (!this.#take(NUMBER) && !this.#take(LITERAL)) this.#fail('expected a value');
    this.#take(SPACE);
  }

  #member(): void {
    this.#take(SPACE);
    this.#string('a key in double quotes');
    this.#take(SPACE);
    if (!this.#isAt(':')) this.#fail('expected ":" after the key');
    this.#at++;
    this.#value();
  }

  #list(close: string, item: () => void): void {
    this.#at++;
    this.#take(SPACE);
    if (this.#isAt(close)) {
      this.#at++;
      return;
    }
    for (;;) {
      item();
      if (this.#isAt(close)) {
        this.#at++;
        return;
      }
      if (!this.#isAt(',')) this.#fail(`expected "," or "${close}"`);
      const comma = this.#at++;
      this.#take(SPACE);
      if (this.#isAt(close)) throw new ScanError(comma, `a trailing comma before "${close}" is not allowed`);
    }
  }

  #string(expected: string): void {
    if (!this.#isAt('"')) this.#fail(`expected ${expected}`);
    if (!this.#take(STRING))
      this.#fail('this string is not closed on its line, or contains a character that must be escaped');
  }

  #isAt(character: string): boolean {
    return this.#text[this.#at] === character;
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found) this.#at += found[0].length;
    return found !== null;
  }

  #fail(message: string): never {
    if (this.#text.startsWith('//', this.#at) || this.#text.startsWith('/*', this.#at))
      throw new ScanError(this.#at, 'JSON does not allow comments');
    throw new ScanError(this.#at, this.#at >= this.#text.length ? 'unexpected end of text' : message);
  }
}
