import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getDelivery, getRun, listRunSteps, queryLogs, RunId } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { packageRoot } from '../../../kit/files/paths.ts';
import type { ToolRun } from './tool.ts';

const DOCS = join(packageRoot, 'docs');
const PAGE = /^[a-z0-9-]+$/;
const LOG_LINES = 50;

/** A kind of resource. Its URIs are `svc://<kind>/<id>`. */
interface ResourceKind {
  title: string;
  description: string;
  parameter: string;
  mimeType: string;
  /** Tool that returns the same data. Callers need the access of this tool. */
  tool: string | null;
  read(id: string, call: ToolRun['call']): Promise<string>;
}

const KINDS: Readonly<Record<string, ResourceKind>> = {
  deliveries: {
    ...{ title: 'Delivery', description: 'A webhook delivery with its steps, body and outcome' },
    ...{ parameter: 'webhookId', mimeType: 'application/json', tool: 'delivery_show' },
    read: async (webhookId, call) => jsonText(await call(getDelivery, { params: { webhookId } })),
  },
  runs: {
    ...{ title: 'Run', description: 'A workflow run with its steps' },
    ...{ parameter: 'runId', mimeType: 'application/json', tool: 'run_show' },
    read: async (id, call) => {
      const params = { runId: RunId.parse(id) };
      const [run, steps] = await Promise.all([call(getRun, { params }), call(listRunSteps, { params })]);
      return jsonText({ run, steps: steps.items });
    },
  },
  logs: {
    ...{ title: 'Logs', description: 'Log lines of a trace, newest first' },
    ...{ parameter: 'traceId', mimeType: 'application/json', tool: 'logs_search' },
    read: async (traceId, call) => jsonText(await call(queryLogs, { query: { traceId, limit: LOG_LINES } })),
  },
  docs: {
    ...{ title: 'Documentation', description: 'A page of the documentation' },
    ...{ parameter: 'page', mimeType: 'text/markdown', tool: null },
    read: (page) => docsPage(page),
  },
};

export const RESOURCE_TEMPLATES = Object.entries(KINDS).map(([kind, { title, description, ...rest }]) => ({
  ...{ name: kind, title, description, mimeType: rest.mimeType },
  uriTemplate: `svc://${kind}/{${rest.parameter}}`,
}));

/** Lists the pages of the documentation. Other resources are found with tools. */
export async function listDocs() {
  const names = await readdir(DOCS).catch(() => []);
  return names
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => {
      const page = name.slice(0, -3);
      return { uri: `svc://docs/${page}`, name: page, mimeType: 'text/markdown' };
    });
}

/** Returns the kind and the id that a URI names. Throws NOT_FOUND for any other URI. */
export function findResource(uri: string): { kind: ResourceKind; id: string } {
  const [, name = '', encoded = ''] = /^svc:\/\/([a-z]+)\/([^/?#]{1,400})$/.exec(uri) ?? [];
  const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  const id = decoded(encoded);
  if (!kind || id === undefined) throw unknownResource(uri);
  return { kind, id };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text) || undefined;
  } catch {
    return undefined;
  }
}

async function docsPage(page: string): Promise<string> {
  if (!PAGE.test(page)) throw unknownResource(`svc://docs/${page}`);
  try {
    return await readFile(join(DOCS, `${page}.md`), 'utf8');
  } catch (cause) {
    throw unknownResource(`svc://docs/${page}`, cause);
  }
}

function unknownResource(uri: string, cause?: unknown): PlatformError {
  const details = { uri: uri.slice(0, 200) };
  const message = `There is no resource "${uri.slice(0, 200)}". resources/templates/list names the URIs.`;
  return new PlatformError('NOT_FOUND', message, cause === undefined ? { details } : { details, cause });
}

const jsonText = (value: unknown): string => JSON.stringify(value, null, 2);
