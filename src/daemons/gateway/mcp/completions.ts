import type { CompleteResult } from '@modelcontextprotocol/server';
import { listDeliveries, listRuns } from '../../../contracts/index.ts';
import type { McpCall } from './platform-calls.ts';
import type { OfferedPrompt } from './plugin-offers.ts';
import type { ProtocolServerDeps } from './protocol-server-deps.ts';
import { listDocs } from './resources.ts';

/** Most values of one answer. @spec MCP: completion */
const MAX_VALUES = 100;
const RECENT = 50;

interface Wanted {
  ref: { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string };
  argument: { name: string; value: string };
  /** Prompts of plugins that the caller may get. */
  prompts: readonly OfferedPrompt[];
}

/** Suggests values for an argument of a prompt or a parameter of a resource: those that begin with the entered text. */
export async function completions(
  { ref, argument, prompts }: Wanted,
  deps: ProtocolServerDeps,
  call: McpCall,
): Promise<CompleteResult> {
  const all = await valuesOf({ ref, argument, prompts }, deps, call);
  const fitting = all.filter((value) => value.startsWith(argument.value));
  return {
    completion: {
      values: fitting.slice(0, MAX_VALUES),
      total: fitting.length,
      hasMore: fitting.length > MAX_VALUES,
    },
  };
}

async function valuesOf(
  { ref, argument, prompts }: Wanted,
  deps: ProtocolServerDeps,
  call: McpCall,
): Promise<readonly string[]> {
  if (ref.type === 'ref/resource') {
    if (ref.uri === 'svc://docs/{page}') return (await listDocs()).map(({ name }) => name);
    if (ref.uri === 'svc://deliveries/{webhookId}') return recentDeliveries(deps, call, {});
    if (ref.uri === 'svc://runs/{runId}') return recentRuns(deps, call);
    return [];
  }
  if (ref.name === 'why_did_this_delivery_fail')
    return argument.name === 'webhookId' ? recentDeliveries(deps, call, { status: ['failed'] }) : [];
  const prompt = prompts.find(({ name }) => name === ref.name);
  return prompt?.declared.arguments.find(({ name }) => name === argument.name)?.values ?? [];
}

async function recentDeliveries(
  { platform, catalog, access }: ProtocolServerDeps,
  call: McpCall,
  query: object,
): Promise<string[]> {
  const tool = await catalog.find(call, 'deliveries_search');
  if (!tool || !access.allows(call.caller, tool)) return [];
  const { items } = await platform.call(
    listDeliveries,
    { query: { ...query, limit: RECENT } as never },
    call,
  );
  return items.map(({ webhookId }) => webhookId);
}

async function recentRuns(
  { platform, catalog, access }: ProtocolServerDeps,
  call: McpCall,
): Promise<string[]> {
  const tool = await catalog.find(call, 'runs_list');
  if (!tool || !access.allows(call.caller, tool)) return [];
  const { items } = await platform.call(listRuns, { query: { limit: RECENT } as never }, call);
  return items.map(({ id }) => id);
}
