import { type Argument, argumentsOf } from './command-arguments.ts';
import { explain, flagForm, usageOf } from './command-help.ts';
import type { CommandEntry } from './command-table/entry.ts';
import { NOUNS } from './command-table/nouns.ts';
import { COMMANDS } from './command-table.ts';
import { GLOBAL_FLAGS } from './globals.ts';

const INTRODUCTION = `# Command line

Made from the commands themselves by \`npm run generate\`; a test keeps it current. \`svc <command> --help\` tells the same.

Nouns are taken in the singular and the plural (\`svc webhook list\`). Flags stand anywhere after \`svc\`; \`--\` ends them.
What must be there comes by its place, everything else is a flag.
`;

const OUTPUT = `## Output

Results go to stdout, everything else to stderr. With \`--json\` stdout holds exactly one document,

\`\`\`json
{ "ok": true, "result": {} }
{ "ok": false, "error": { "code": "…", "message": "…", "details": {} }, "result": null, "meta": {} }
\`\`\`

also when the call itself could not be understood. Commands that stream print a JSON document a line instead, until they
end; a failure before the first is one envelope. Colours follow the terminal, \`NO_COLOR\` and \`FORCE_COLOR\`. Where nobody
can be asked (no terminal, \`--json\`, \`--no-input\`) a command that wants an answer ends with 3 and names the flag that
gives it. Exit codes are in [errors.md](errors.md#exit-codes-of-the-command-line); \`svc explain <code>\` tells what a code
means.

Every record has \`id\`, beside the field that the HTTP interface calls it by (\`webhookId\`, \`hostId\`, \`clientId\`, \`jti\`).
Beside every time stands its ISO form: \`receivedAt\` is in epoch milliseconds, \`receivedAtIso\` reads
\`2026-11-22T12:00:00.000Z\`, and both are \`null\` where there is none. Data of yours (\`input\`, \`output\`, \`body\`), results of
\`svc run\`, configurations and API descriptions are printed unchanged.

Without \`--json\`, control characters in text of plugins, senders and hosts are spelt out (\`\\x1b\`): such text can neither
move the cursor nor colour, hide or reverse what follows.

## Environment

| Variable | Meaning |
|---|---|
| \`SVC_CONFIG\`, \`SVC_PROFILE\` | as \`--config\`, \`--profile\` |
| \`SVC_HOME\` | the data folder; default \`.svc\` beside the config |
| \`SVC_GATEWAY_URL\`, \`SVC_TOKEN\` | as \`--url\`, \`--token\` |
| \`SVC_<SERVICE>_PORT\`, \`SVC_<SERVICE>_HOST\` | where a service listens: \`SVC_GATEWAY_PORT\` |
| \`SVC_MASTER_KEY\`, \`GATEWAY_JWT_SECRET\`, \`GATEWAY_JWT_SECRET_PREVIOUS\`, \`GATEWAY_INTERNAL_SECRET\` | the platform's secrets, instead of \`keys.json\` |
| \`GATEWAY_PUBLIC_URL\` | the address that senders of webhooks use |
| \`SVC_AGENT_HOME\` | where this machine's registration as a host is kept |

A \`.env\` beside the config is read; the real environment wins.

## Completion

\`\`\`sh
source <(svc completion bash)                                     # in ~/.bashrc
source <(svc completion zsh)                                      # in ~/.zshrc
svc completion fish > ~/.config/fish/completions/svc.fish
svc completion powershell | Out-String | Invoke-Expression        # in $PROFILE
\`\`\`

Ids of plugins, events, hosts, runs and so on are asked of the gateway and remembered for ten seconds; when it cannot be
asked, nothing is offered and nothing is said. The script for PowerShell (7.3 and newer) follows its documentation and has
not been run by us; tests run the others.
`;

/** \`docs/cli.md\`. */
export async function referencePage(): Promise<string> {
  const shown = COMMANDS.filter(({ hidden }) => !hidden);
  const groups = [...new Set(shown.map(({ group }) => group))];
  const parts = [INTRODUCTION, globalFlags(), OUTPUT];
  for (const group of groups) {
    parts.push(`## ${group}\n`);
    let noun = '';
    for (const entry of shown.filter((each) => each.group === group)) {
      const [first, verb] = entry.name.split(' ');
      if (verb && first !== noun) parts.push(`**${first}**: ${NOUNS[first!] ?? ''}.\n`);
      noun = first!;
      parts.push(await commandSection(entry));
    }
  }
  return parts.join('\n');
}

async function commandSection({ name, summary, example, load }: CommandEntry): Promise<string> {
  const command = await load();
  const all = argumentsOf(command);
  const rows = all.map((argument) => `| ${code(formOf(argument))} | ${cell(explain(argument))} |`);
  const table = rows.length === 0 ? [] : ['', '| | |', '|---|---|', ...rows];
  const streams = command.streams
    ? ['', `Streams${command.streams === 'always' ? '' : ` ${command.streams}`}.`]
    : [];
  return [
    `### svc ${name}`,
    '',
    `${cell(summary)}.`,
    '',
    '```sh',
    usageOf(command),
    ...(example === usageOf(command) ? [] : [`# ${example}`]),
    '```',
    ...table,
    ...streams,
    '',
  ].join('\n');
}

function globalFlags(): string {
  const rows = GLOBAL_FLAGS.map(
    ({ name, value, summary }) =>
      `| ${code(value ? `--${name} <${value}>` : `--${name}`)} | ${cell(summary)} |`,
  );
  return ['## Flags of every command', '', '| | |', '|---|---|', ...rows, ''].join('\n');
}

function formOf(argument: Argument): string {
  if (argument.kind === 'flag') return flagForm(argument);
  const form = `${argument.name}${argument.list ? '...' : ''}`;
  return argument.required ? `<${form}>` : `[${form}]`;
}

const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
/** Angle brackets would be taken for HTML, a bar for the end of a cell. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
