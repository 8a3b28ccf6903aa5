import { z } from 'zod';
import { SERVICE_NAMES, type ServiceName } from '../../../contracts/index.ts';
import { createClient } from '../../../http/client.ts';
import type { OpenApiDocument } from '../../../http/openapi.ts';
import { version } from '../../../kit/files/paths.ts';
import { runningUrl } from '../../../supervisor/run-file.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { lightFetch } from '../../light-fetch.ts';
import { UsageError } from '../../parse-args.ts';
import { selectedGateway } from '../../selected-gateway.ts';

const DOCUMENT = { own: '/openapi.json', merged: '/openapi-merged.json' } as const;

/** An OpenAPI description, or the text of a client module. */
type Printed = OpenApiDocument | { client: string };

const DEFAULT_URL = 'http://127.0.0.1:4000';

/** @spec Health, metrics, specification */
export const openapi = defineCommand({
  name: 'openapi',
  summary: 'Print the OpenAPI description of one or all services, or a typed client',
  example: 'svc openapi --merged > openapi.json',
  verbatim: true,
  args: z.object({
    service: z
      .enum(SERVICE_NAMES)
      .optional()
      .describe('service to describe; default: all behind the gateway (--merged)'),
    merged: z.boolean().default(false).describe('all services behind the gateway, in one document'),
    client: z
      .enum(['ts'])
      .optional()
      .describe('print a typed client instead: ts for TypeScript with openapi-fetch'),
  }),
  positionals: ['service'],
  async run({ service, merged, client }, context) {
    if (service && merged) throw new UsageError('--merged covers all services. Remove the service argument.');
    const base = addressOf(service ?? 'gateway', context);
    const path = service ? DOCUMENT.own : DOCUMENT.merged;
    const document = base ? await fetchDocument(base, path) : await offlineDocument(service, path, context);
    if (client === undefined) return ok<Printed>(document);
    const { clientText } = await import('./client/client-text.ts');
    return ok<Printed>({ client: clientText({ document, baseUrl: base ?? DEFAULT_URL, version }) });
  },
  text: (printed: Printed) =>
    'client' in printed ? printed.client.trimEnd() : JSON.stringify(printed, null, 2),
});

async function offlineDocument(
  service: ServiceName | undefined,
  path: string,
  context: CommandContext,
): Promise<OpenApiDocument> {
  context.ui.note('svc is not running here, so the description has no routes of plugins.');
  const { describeOffline } = await import('./offline.ts');
  return describeOffline(service, (url) => fetchDocument(url, path));
}

/**
 * Returns the URL of a running service, or null if the service is not running. For the gateway, `--url`,
 * SVC_GATEWAY_URL and `svc login` take precedence.
 */
function addressOf(service: ServiceName, context: CommandContext): string | null {
  const named = selectedGateway(context);
  if (named && service === 'gateway') return named;
  return runningUrl(context.folder(), service);
}

/** Fetches an OpenAPI description. OpenAPI descriptions are public, so no token is needed. */
async function fetchDocument(url: string, path: string): Promise<OpenApiDocument> {
  const client = createClient({ url, peer: 'service', send: lightFetch });
  return client.call({ method: 'GET', path, reply: z.custom<OpenApiDocument>() });
}
