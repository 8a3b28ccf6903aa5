import type { AuthInfo } from '@modelcontextprotocol/server';
import type { McpCall } from './platform-calls.ts';

/** Returns what the MCP library passes to handlers, so that `callOf` finds the call. */
export function authInfoOf(call: McpCall): AuthInfo {
  return { token: '', clientId: call.caller.hostId, scopes: [], extra: { call } };
}

/** Returns the call of a request. Throws if the request did not come from the endpoint. */
export function callOf(authInfo: AuthInfo | undefined): McpCall {
  const call = authInfo?.extra?.call as McpCall | undefined;
  if (!call) throw new Error('An MCP request has no authenticated caller.');
  return call;
}

/** Returns a text that differs for each caller, and for each of the other parts. */
export function callerKey(
  { caller: { namespaceId, hostId } }: Pick<McpCall, 'caller'>,
  ...parts: ReadonlyArray<string | number | null>
): string {
  return JSON.stringify([namespaceId, hostId, ...parts]);
}
