import { HOST_CLOSE, HOST_PROTOCOL } from '../../../../contracts/index.ts';
import type { OpenChallenge } from '../../../../kit/security/host-proof.ts';
import type { HostRecord } from '../../../../store/ports/index.ts';
import type { AgentFrameOf } from './frames.ts';

type Hello = AgentFrameOf<'hello'>;

/** Close code and reason of the socket after a refused `hello` frame. */
export interface HelloFault {
  code: number;
  reason: string;
}

export function protocolFault({ protocol }: Hello): HelloFault | undefined {
  if (protocol === HOST_PROTOCOL) return undefined;
  return {
    code: HOST_CLOSE.protocol,
    reason: `this gateway uses protocol ${HOST_PROTOCOL}, not ${protocol}`,
  };
}

/**
 * Returns a fault if the host is revoked. Also returns a fault if the agent does not prove possession of the host's
 * private key.
 */
export function identityFault(
  { proof }: Hello,
  found: HostRecord,
  { challenge, isRevoked }: { challenge: OpenChallenge | undefined; isRevoked: boolean },
): HelloFault | undefined {
  if (found.revokedAt !== null || isRevoked) return { code: HOST_CLOSE.revoked, reason: 'revoked' };
  if (proof && challenge?.accepts(proof, found.hostId, found.publicKey)) return undefined;
  return {
    code: HOST_CLOSE.unauthenticated,
    reason: 'hello does not prove the private key of the host',
  };
}
