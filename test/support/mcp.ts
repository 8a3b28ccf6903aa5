import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CallToolResult,
  Client,
  type ClientOptions,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { startWorkflow, type TestWorkflow } from '../daemons/workflow/support/workflow.ts';
import type { AnyJson } from './any-json.ts';
import { atEnd } from './at-end.ts';
import { startTestDaemon, type TestDaemonOptions, tempDir } from './daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from './gateway.ts';

/** Protocol revisions: 2025-11-25 and the newest one. */
export const ERAS = ['legacy', { pin: '2026-07-28' }] as const;
export type Era = (typeof ERAS)[number];

const PLUGIN = '@acme/shop';
const MANIFEST = {
  schema: 'svc.plugin/3',
  id: PLUGIN,
  version: '1.0.0',
  webhooks: [{ event: 'paid', handler: 'shop.js#onPaid', auth: { type: 'secret', header: 'x-token' } }],
};
const CODE = `
import { defineWebhook } from 'svc-platform/sdk';
export const onPaid = defineWebhook({
  async execute(ctx, order) {
    if (order.broken) throw new Error('the order has no price. ' + order.broken);
    return { paid: order.id };
  },
});
`;
const WORKFLOWS = {
  note: { id: 'note', jobs: { main: { steps: [{ id: 'keep', uses: 'set', with: { text: 'kept' } }] } } },
  ask: {
    id: 'ask',
    jobs: {
      main: {
        steps: [{ id: 'agree', uses: 'approval', with: { message: 'Release?', agents: true } }],
      },
    },
  },
};

export interface McpPlatform {
  gateway: TestGateway;
  workflow: TestWorkflow;
  projectDir: string;
  /** Connects the official client. */
  connect(token?: string, era?: Era, options?: ConnectOptions): Promise<Client>;
}

export interface ConnectOptions {
  capabilities?: ClientOptions['capabilities'];
  /** Adds handlers before the client connects. */
  prepare?(client: Client): void;
}

export interface McpProject {
  manifest?: Record<string, unknown>;
  code?: string;
  /** JSON files of the plugin. */
  files?: Record<string, unknown>;
  workflows?: Record<string, Record<string, unknown>>;
}

/** Writes a project with a plugin and workflows, which a test can add to. */
export async function writeMcpProject({
  manifest = {},
  code = '',
  files: more = {},
  workflows = {},
}: McpProject = {}): Promise<string> {
  const folder = await tempDir();
  const plugin = join(folder, 'plugins/shop');
  await mkdir(plugin, { recursive: true });
  await mkdir(join(folder, 'workflows'), { recursive: true });
  const files = {
    [join(plugin, 'package.json')]: { name: PLUGIN, version: '1.0.0', type: 'module' },
    [join(plugin, 'svc.plugin.json')]: { ...MANIFEST, ...manifest },
    ...Object.fromEntries(Object.entries(more).map(([name, content]) => [join(plugin, name), content])),
    ...Object.fromEntries(
      Object.entries({ ...WORKFLOWS, ...workflows }).map(([name, definition]) => [
        join(folder, `workflows/${name}.yaml`),
        definition,
      ]),
    ),
  };
  for (const [file, content] of Object.entries(files)) await writeFile(file, JSON.stringify(content));
  await writeFile(join(plugin, 'shop.js'), CODE + code);
  return folder;
}

/** Starts the gateway with the workflow and REST services on one project. */
export async function startMcp(
  options: TestDaemonOptions & { project?: McpProject } = {},
): Promise<McpPlatform> {
  const { project, ...daemon } = options;
  const projectDir = daemon.projectDir ?? (await writeMcpProject(project));
  const config = { plugins: ['./plugins/*'], ...daemon.config };
  const workflow = await startWorkflow({ projectDir, config });
  const api = await startTestDaemon(rest, { projectDir, config });
  const peers = createPeers({ workflow: workflow.url, rest: api.url });
  const gateway = await startGateway({ ...daemon, projectDir, config, peers });
  return { gateway, workflow, projectDir, connect: (...options) => connectTo(gateway.url, ...options) };
}

/** Connects the official client to the MCP endpoint of a gateway. */
export async function connectTo(
  url: string,
  token = ADMIN_TOKEN,
  mode: Era = 'legacy',
  { capabilities = {}, prepare }: ConnectOptions = {},
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode }, capabilities },
  );
  prepare?.(client);
  const headers = { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } }));
  atEnd(() => client.close());
  return client;
}

/** Calls a tool and returns its data. Fails if the tool failed. */
export async function callTool(client: Client, name: string, input: object = {}): Promise<AnyJson> {
  const reply = (await client.callTool({ name, arguments: { ...input } })) as CallToolResult;
  if (reply.isError) throw new Error(JSON.stringify(reply.content));
  return (reply.structuredContent as AnyJson).result ?? reply.structuredContent;
}

/** Returns the JSON of a failed call, which comes after the notice that it is data from outside. */
export function errorIn({ content }: Pick<CallToolResult, 'content'>): AnyJson {
  return JSON.parse((content.at(-1) as { text: string }).text);
}

/** Calls a tool that fails, and returns the error of the platform. */
export async function refusedTool(client: Client, name: string, input: object = {}): Promise<AnyJson> {
  const reply = (await client.callTool({ name, arguments: { ...input } })) as CallToolResult;
  if (!reply.isError) throw new Error(`The tool ${name} did not fail.`);
  return errorIn(reply).error;
}
