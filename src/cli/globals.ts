/** Flags that every command accepts, before or after the command name. */
export interface GlobalFlags {
  json: boolean;
  quiet: boolean;
  debug: boolean;
  /** Whether prompts are allowed. False with `--no-input`. */
  input: boolean;
  yes: boolean;
  namespace?: string;
  profile?: string;
  config?: string;
  url?: string;
  token?: string;
}

export interface GlobalFlag {
  name: string;
  /** Placeholder of the flag's value in help. Absent for switches. */
  value?: string;
  summary: string;
}

export const GLOBAL_FLAGS: readonly GlobalFlag[] = [
  { name: 'json', summary: 'print one JSON envelope on stdout (streams: one document per line)' },
  { name: 'config', value: 'file', summary: 'config file, or the folder of svc.config.json' },
  { name: 'profile', value: 'name', summary: 'config profile; default: development' },
  { name: 'namespace', value: 'id', summary: 'namespace to act in; default: that of the token' },
  { name: 'url', value: 'address', summary: 'gateway to use; default: the local one' },
  {
    name: 'token',
    value: 'token',
    summary: 'Bearer token (SVC_TOKEN avoids showing it in the process list)',
  },
  { name: 'no-input', summary: 'never prompt; fail with the name of the flag to use' },
  { name: 'yes', summary: 'answer yes to all prompts' },
  { name: 'quiet', summary: 'print only results and errors' },
  { name: 'debug', summary: 'print stack traces' },
];

/** The words that name the command, and the remaining arguments. */
export interface SplitArgs {
  words: string[];
  rest: string[];
}

/**
 * Separates the words of a command from its arguments. `count` returns the maximum number of command words for a given
 * first word.
 */
export function splitWords(argv: readonly string[], count: (first: string) => number): SplitArgs {
  const words: string[] = [];
  const rest: string[] = [];
  let maxWords = 1;
  for (let i = 0; i < argv.length; i++) {
    const token = argv[i]!;
    if (words.length < maxWords && !token.startsWith('-')) {
      words.push(token);
      if (words.length === 1) maxWords = count(token);
    } else {
      rest.push(token);
      if (takesValue(token) && i + 1 < argv.length) rest.push(argv[++i]!);
      if (token === '--') return { words, rest: [...rest, ...argv.slice(i + 1)] };
    }
  }
  return { words, rest };
}

/** Returns true if the next argument is the value of this global flag. */
function takesValue(token: string): boolean {
  return GLOBAL_FLAGS.some(({ name, value }) => value !== undefined && token === `--${name}`);
}
