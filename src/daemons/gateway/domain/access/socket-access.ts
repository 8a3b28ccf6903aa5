import { type CallerAccess, SOCKET_ACCESS } from '../../../../contracts/index.ts';
import type { Principal } from '../identity/authenticator.ts';
import type { Revocations } from '../identity/revocations.ts';
import { allowsAccess } from './require-access.ts';

interface Rights {
  of(principal: Principal): CallerAccess | undefined;
  onChanged(listener: () => void): void;
}

/** Decides which open WebSockets must be closed because of a revocation or a change of roles or scopes. */
export interface SocketCutOff {
  isRevoked(principal: Principal): boolean;
  onRevoked(listener: () => void): void;
}

export function createSocketCutOff(revocations: Revocations, rights: Rights): SocketCutOff {
  return {
    isRevoked: (principal) =>
      revocations.isRevoked(principal) ||
      !allowsAccess({ ...principal, access: rights.of(principal) }, SOCKET_ACCESS),
    onRevoked(listener) {
      revocations.onRevoked(listener);
      rights.onChanged(listener);
    },
  };
}
