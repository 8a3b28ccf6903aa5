/** Flags that every command takes, before or after its name. */
export interface GlobalFlags {
  json: boolean;
  quiet: boolean;
  debug: boolean;
  /** False with `--no-input`: never ask. */
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
  /** Placeholder of its value; without it, a switch. */
  value?: string;
  summary: string;
}

export const GLOBAL_FLAGS: readonly GlobalFlag[] = [
  { name: 'json', summary: 'print one JSON envelope on stdout (streams: one document a line)' },
  { name: 'config', value: 'file', summary: 'the config file, or the folder that holds svc.config.json' },
  { name: 'profile', value: 'name', summary: 'the config profile; default: development' },
  { name: 'namespace', value: 'id', summary: 'the namespace to act in; default: that of the token' },
  { name: 'url', value: 'address', summary: 'the gateway to talk to; default: the one that runs here' },
  { name: 'token', value: 'token', summary: 'the Bearer token to use (SVC_TOKEN is in no process list)' },
  { name: 'no-input', summary: 'never ask; fail with the flag that would answer' },
  { name: 'yes', summary: 'answer yes to every question' },
  { name: 'quiet', summary: 'print results and errors only' },
  { name: 'debug', summary: 'print stack traces of failures' },
];

/** The command's words and everything else, whichever side of the words the flags stand on. */
export interface SplitArgs {
  words: string[];
  rest: string[];
}

/** Takes the leading words of the command out of the arguments; `count` says how many words it may have. */
export function splitWords(argv: readonly string[], count: (first: string) => number): SplitArgs {
  const words: string[] = [];
  const rest: string[] = [];
  let wanted = 1;
  for (let i = 0; i < argv.length; i++) {
    const token = argv[i]!;
    if (words.length < wanted && !token.startsWith('-')) {
      words.push(token);
      if (words.length === 1) wanted = count(token);
    } else {
      rest.push(token);
      if (takesNext(token) && i + 1 < argv.length) rest.push(argv[++i]!);
      if (token === '--') return { words, rest: [...rest, ...argv.slice(i + 1)] };
    }
  }
  return { words, rest };
}

/** Whether this is a global flag whose value is the next argument. */
function takesNext(token: string): boolean {
  return GLOBAL_FLAGS.some(({ name, value }) => value !== undefined && token === `--${name}`);
}
