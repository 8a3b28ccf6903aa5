import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../src/kit/files/paths.ts';

/** Order of the pages. Pages that are not listed follow in alphabetical order. */
const ORDER = [
  ...['plugins', 'manifest', 'webhooks', 'providers', 'sources', 'queues', 'workflows', 'workflow-states'],
  ...['gateway', 'cli', 'configuration', 'errors', 'observability', 'operations', 'security', 'studio'],
];

/** Descriptions of pages whose first sentence does not describe the page. */
const ABOUT: Readonly<Record<string, string>> = {
  architecture: 'The services, their folders, and where to find each part of the code.',
  cli: 'All commands, flags and environment variables.',
  configuration: 'All keys of svc.config.json with defaults and bounds.',
  errors: 'All error codes with status, cause and remedy.',
  gateway: 'Clients, tokens, roles, limits and routing.',
  manifest: 'All keys of svc.plugin.json with defaults and bounds.',
  observability: 'Logs, metrics, traces and diagnostics.',
  operations: 'Install, configure, back up and update the platform.',
  providers: 'Webhook senders with a known signature.',
  proxies: 'Run the gateway behind nginx, HAProxy or Caddy.',
  security: 'Secrets, the sandbox, tenants, and what is not protected.',
  webhooks: 'Declare, provision, verify, replay and test webhooks.',
  'workflow-states': 'States of runs, jobs and steps.',
};

interface Page {
  name: string;
  title: string;
  about: string;
  text: string;
}

/** Reads the pages of `docs/`, without the records of decisions. */
function readPages(): Page[] {
  const names = readdirSync(join(packageRoot, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length));
  const place = (name: string): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return names
    .toSorted((a, b) => place(a) - place(b) || (a < b ? -1 : 1))
    .map((name) => {
      const text = readFileSync(join(packageRoot, 'docs', `${name}.md`), 'utf8').trim();
      const title = /^# (.+)$/m.exec(text)?.[1] ?? name;
      return { name, title, about: ABOUT[name] ?? firstSentence(text), text };
    });
}

/** Returns the first sentence below the title, without links. */
function firstSentence(text: string): string {
  const paragraph = text.split('\n\n').find((part) => /^[A-Z`]/.test(part)) ?? '';
  const prose = paragraph.replaceAll('\n', ' ').replace(/\[([^\]]+)\]\([^)]+\)/g, '$1');
  return /^.*?[.!](?= |$)/.exec(prose)?.[0] ?? prose;
}

const INTRODUCTION = `# svc

> A self-hosted automation platform: webhooks in, plugin code in a sandbox, typed REST routes, durable workflows and
> queues, one authenticated gateway. It needs only Node.

Paths are relative to the npm package svc-platform. llms-full.txt has all pages in one file. A running gateway serves
both files at /llms.txt and /llms-full.txt, and the description of its API at /openapi-merged.json.

To write a plugin: \`svc plugins create <id>\`, edit its manifest and handlers, then repeat
\`svc plugins validate <folder> --json\` and \`svc plugins test <folder> --json\` until no fault is left. Each fault names
file, line, code and remedy. \`svc commands --json\` lists all commands, \`svc explain <code>\` explains an error code.
`;

/** Returns llms.txt, the index of the documentation for language models, in the format of https://llmstxt.org. */
export function llmsIndex(): string {
  const pages = readPages().map(({ name, title, about }) => `- [${title}](docs/${name}.md): ${about}`);
  const others = [
    '- [Architecture decisions](docs/decisions/README.md): Why the platform is built this way.',
    '- [Changelog](CHANGELOG.md): Changes by version.',
    '- [JSON Schema of manifests](schemas/plugin.schema.json): Also workflow.schema.json and svc.schema.json.',
  ];
  return `${INTRODUCTION}\n## Docs\n\n${pages.join('\n')}\n\n## Optional\n\n${others.join('\n')}\n`;
}

/** Returns llms-full.txt: the README and all pages, each after a line with its path. */
export function llmsFull(): string {
  const readme = readFileSync(join(packageRoot, 'README.md'), 'utf8').trim();
  const parts = [
    { path: 'README.md', text: readme },
    ...readPages().map(({ name, text }) => ({ path: `docs/${name}.md`, text })),
  ];
  return `${parts.map(({ path, text }) => `<!-- ${path} -->\n\n${text}\n`).join('\n')}`;
}
