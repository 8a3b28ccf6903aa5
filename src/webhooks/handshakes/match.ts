import type { Handshake } from '../../contracts/index.ts';
import { type HandshakeRequest, readPlace } from './request.ts';

/** Returns the first handshake whose method and conditions the request fulfils. */
export function findHandshake(
  handshakes: readonly Handshake[],
  request: HandshakeRequest,
): Handshake | undefined {
  return handshakes.find(
    ({ method, when }) =>
      method === request.method &&
      when.every(({ at, equals }) => {
        const value = readPlace(at, request);
        return equals === undefined ? isPresent(value) : value === equals;
      }),
  );
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** Returns whether a handshake with this method is declared. */
export function hasHandshake(handshakes: readonly Handshake[], method: string): boolean {
  return handshakes.some((handshake) => handshake.method === method);
}
