import { argumentsOf } from './command-arguments.ts';
import type { Argument } from './command-description.ts';
import { explain, flagForm } from './command-help.ts';
import { COMMANDS } from './command-table/command-table.ts';
import type { CommandEntry } from './command-table/entry.ts';
import type { AnyCommand } from './define-command.ts';
import { GLOBAL_FLAGS } from './globals.ts';

const INTRODUCTION = `# Command line

Generated from the commands by \`npm run generate\`; a test keeps it current. \`svc <command> --help\` prints the same.

Nouns may be singular or plural (\`svc webhook list\`). Flags may appear anywhere after \`svc\`; \`--\` ends them. Required
values are positional.
`;

const OUTPUT = `## Output

Results go to stdout, everything else to stderr. With \`--json\` stdout holds one document, also for usage errors:

\`\`\`json
{ "ok": true, "result": {} }
{ "ok": false, "error": { "code": "…", "message": "…", "details": {} }, "result": null, "meta": {} }
\`\`\`

Streaming commands print one JSON document per line; a failure before the first line is one envelope. A command that needs
an answer without a terminal (or with \`--json\`, \`--no-input\`) exits with 3 and names the flag that gives the answer.
[errors.md](errors.md#exit-codes-of-the-command-line) lists exit codes; \`svc explain <code>\` explains any code.

Every record has \`id\`, beside its own id field (\`webhookId\`, \`hostId\`, \`clientId\`, \`jti\`). Every time also has an ISO
form: \`receivedAt\` is epoch milliseconds, \`receivedAtIso\` is \`2026-11-22T12:00:00.000Z\`. Your own data (\`input\`,
\`output\`, \`body\`), results of \`svc run\`, configurations and API descriptions are printed unchanged.

Colours follow the terminal, \`NO_COLOR\` and \`FORCE_COLOR\`. Without \`--json\`, control characters in text from plugins,
senders and hosts are printed escaped (\`\\x1b\`).

## Environment

A \`.env\` beside the config is read; real environment variables win.

- \`SVC_CONFIG\`, \`SVC_PROFILE\`: as \`--config\`, \`--profile\`.
- \`SVC_GATEWAY_URL\`, \`SVC_TOKEN\`: as \`--url\`, \`--token\`.
- \`SVC_HOME\`: the data folder; default \`.svc\` beside the config.
- \`SVC_<SERVICE>_PORT\`, \`SVC_<SERVICE>_HOST\`: where a service listens, such as \`SVC_GATEWAY_PORT\`.
- \`SVC_MASTER_KEY\`, \`GATEWAY_JWT_SECRET\`, \`GATEWAY_JWT_SECRET_PREVIOUS\`, \`GATEWAY_INTERNAL_SECRET\`: the platform's
  secrets, instead of those in \`keys.json\`; see [operations.md](operations.md#change-secrets).
- \`GATEWAY_PUBLIC_URL\`: the public URL of the gateway, from which webhook URLs are built.
- \`SVC_AGENT_HOME\`: the folder of this machine's registration as a host.

## Completion

\`\`\`sh
source <(svc completion bash)                                     # in ~/.bashrc
source <(svc completion zsh)                                      # in ~/.zshrc
svc completion fish > ~/.config/fish/completions/svc.fish
svc completion powershell | Out-String | Invoke-Expression        # in $PROFILE
\`\`\`

Ids come from the gateway and are cached for ten seconds; without a gateway none are offered. The PowerShell script (7.3 or
newer) is untested.
`;

/** Renders `docs/cli.md`. */
export async function referencePage(): Promise<string> {
  const shown = COMMANDS.filter(({ hidden }) => !hidden);
  const commands = await Promise.all(shown.map(async (entry) => ({ entry, command: await entry.load() })));
  const shared = sharedLines(commands.map(({ command }) => command));
  const parts = [INTRODUCTION, globalFlags(), sharedSection(shared), OUTPUT];
  for (const [group, members] of Map.groupBy(commands, ({ entry }) => entry.group)) {
    parts.push(`## ${group}\n`);
    for (const { entry, command } of members) parts.push(commandSection(entry, command, shared));
  }
  return parts.join('\n');
}

function commandSection({ name, summary, example }: CommandEntry, command: AnyCommand, shared: Set<string>) {
  const all = argumentsOf(command);
  const own = all.map(lineOf).filter((line) => !shared.has(line));
  const usage = [`svc ${name}`, ...all.filter(({ kind }) => kind === 'argument').map(formOf)].join(' ');
  const others = all.filter((argument) => argument.kind === 'flag' && shared.has(lineOf(argument)));
  return [
    `### ${code(usage)}`,
    '',
    `${text(summary)}.${streams(command)}${/ -/.test(example) ? ` Example: ${code(example)}.` : ''}`,
    ...(own.length > 0 ? ['', ...own] : []),
    ...(others.length > 0 ? ['', `Also ${others.map(({ name }) => code(`--${name}`)).join(', ')}.`] : []),
    '',
  ].join('\n');
}

function streams({ streams: when }: AnyCommand): string {
  if (!when) return '';
  return when === 'always' ? ' Streams.' : ` Streams ${when}.`;
}

/** Returns the argument descriptions shared by several commands: for each argument, the most frequent one. */
function sharedLines(commands: readonly AnyCommand[]): Set<string> {
  const byName = Map.groupBy(commands.flatMap(argumentsOf), ({ kind, name }) => `${kind} ${name}`);
  const mostFrequent = [...byName.values()].flatMap((same) =>
    [...Map.groupBy(same.map(lineOf), (line) => line).values()]
      .filter(({ length }) => length > 1)
      .toSorted((a, b) => b.length - a.length)
      .slice(0, 1),
  );
  return new Set(mostFrequent.map(([line]) => line!));
}

function sharedSection(shared: ReadonlySet<string>): string {
  return [
    '## Shared arguments',
    '',
    'A command that takes flags of this list names them after "Also".',
    '',
    ...shared,
    '',
  ].join('\n');
}

function globalFlags(): string {
  const lines = GLOBAL_FLAGS.map(
    ({ name, value, summary }) => `- ${code(value ? `--${name} <${value}>` : `--${name}`)}: ${text(summary)}`,
  );
  return ['## Flags of every command', '', ...lines, ''].join('\n');
}

function lineOf(argument: Argument): string {
  return `- ${code(formOf(argument))}: ${text(explain(argument))}`;
}

function formOf(argument: Argument): string {
  if (argument.kind === 'flag') return flagForm(argument);
  const form = `${argument.name}${argument.list ? '...' : ''}`;
  return argument.required ? `<${form}>` : `[${form}]`;
}

const code = (form: string): string => `\`${form}\``;
/** Escapes angle brackets, which Markdown takes for HTML. */
const text = (words: string): string => words.replaceAll('<', '&lt;');
