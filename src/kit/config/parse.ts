import { PlatformError } from '../errors.ts';
import { nestsDeeperThan } from '../json.ts';

export interface JsonFault {
  message: string;
  /** Both count from 1. */
  line: number;
  column: number;
}

const DEEPEST = 100;

/** Parses a config file's text. Throws CONFIG_PARSE_ERROR with the place of the first fault. @spec Platform codes */
export function parseConfigText(text: string, file: string): unknown {
  const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (nestsDeeperThan(source, DEEPEST)) {
    throw new PlatformError('CONFIG_PARSE_ERROR', `${file} nests deeper than ${DEEPEST} levels.`, {
      details: { file },
    });
  }
  try {
    return JSON.parse(source);
  } catch (error) {
    const { message, line, column } = locateJsonFault(source);
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

/** The place where `text`, which JSON.parse refused, stops being JSON: the engine's own message often names none. */
function locateJsonFault(text: string): JsonFault {
  const scanner = createScanner(text);
  const fault = scanner.firstFault() ?? { offset: text.length, message: 'the text ends too early' };
  const before = text.slice(0, fault.offset).split('\n');
  return { message: fault.message, line: before.length, column: before.at(-1)!.length + 1 };
}

class Fault {
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

function createScanner(text: string): { firstFault(): Fault | null } {
  let at = 0;

  function take(pattern: RegExp): boolean {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found !== null;
  }
  function fail(message: string): never {
    if (text.startsWith('//', at) || text.startsWith('/*', at)) throw new Fault(at, 'JSON has no comments');
    throw new Fault(at, at >= text.length ? 'the text ends too early' : message);
  }
  function string(what: string): void {
    if (text[at] !== '"') fail(`${what} was expected`);
    if (!take(STRING))
      fail('this string is not closed on its line, or holds a character that must be escaped');
  }
  function value(): void {
    take(SPACE);
    if (text[at] === '{') list('}', member);
    else if (text[at] === '[') list(']', value);
    else if (text[at] === '"') string('a string');
    else if (!take(NUMBER) && !take(LITERAL)) fail('a value was expected');
    take(SPACE);
  }
  function member(): void {
    take(SPACE);
    string('a key in double quotes');
    take(SPACE);
    if (text[at] !== ':') fail('":" was expected after the key');
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
      if (text[at] !== ',') fail(`"," or "${close}" was expected`);
      const comma = at++;
      take(SPACE);
      if (text[at] === close) throw new Fault(comma, `a comma may not stand before "${close}"`);
    }
  }
  return {
    firstFault() {
      try {
        value();
        return at < text.length ? new Fault(at, 'the text goes on after its end') : null;
      } catch (error) {
        if (error instanceof Fault) return error;
        throw error;
      }
    },
  };
}
