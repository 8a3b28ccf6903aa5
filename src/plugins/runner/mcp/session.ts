import { isRecord } from '../../../kit/data/is-record.ts';
import { messageOf } from '../failure.ts';
import { raceAbort } from '../race-abort.ts';
import { type Rpc, ServerFailure, withLimit } from './rpc.ts';

/** Newest revision of the handshake. Servers of earlier revisions answer with their own. */
const PROTOCOL = '2025-11-25';
const KNOWN = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const START_MS = 20_000;

/** A server that has been started or reached. */
export interface Session {
  rpc: Rpc;
  /** Whether the server still runs. */
  isOpen(): boolean;
  /** Closes the server if it does not answer, after a request was given up. */
  probe(): void;
  close(): void;
}

/**
 * Does the handshake. The platform declares no capabilities: no sampling, no questions, no folders. `onVersion` receives
 * the revision of the server before the next message is sent.
 */
export async function initialise(
  rpc: Rpc,
  signal: AbortSignal,
  onVersion: (version: string) => void = () => {},
): Promise<void> {
  const limited = withLimit(signal, START_MS, 'answer the handshake');
  try {
    const params = {
      protocolVersion: PROTOCOL,
      capabilities: {},
      clientInfo: { name: 'svc-platform', version: '1' },
    };
    const result = await rpc.request('initialize', params, limited.signal);
    const version = isRecord(result) ? result.protocolVersion : undefined;
    if (typeof version !== 'string' || !KNOWN.includes(version))
      throw new ServerFailure('it speaks no revision of MCP from 2024-11-05 to 2025-11-25');
    onVersion(version);
    // A server may refuse requests that arrive before this notification.
    await raceAbort(confirm(rpc), limited.signal);
  } finally {
    limited.stop();
  }
}

async function confirm(rpc: Rpc): Promise<void> {
  const method = 'notifications/initialized';
  try {
    await rpc.notify(method);
  } catch (error) {
    throw new ServerFailure(`it did not accept "${method}": ${messageOf(error)}`);
  }
}
