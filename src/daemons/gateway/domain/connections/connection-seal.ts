import type { Seal } from '../../../../kit/security/keys.ts';
import { type ConnectionKey, type ConnectionRecord, sealedColumns } from '../../../../store/ports/index.ts';
import { Tokens } from './connection-records.ts';

type Column = 'sealed_secret' | 'sealed_tokens';

/** Encrypts client secrets and tokens with the master key, for one connection. */
export class ConnectionSeal {
  readonly #seal: Seal;

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  secret(key: ConnectionKey, secret: string): string {
    return this.#seal.seal(secret, contextOf(key, 'sealed_secret'));
  }

  tokens(key: ConnectionKey, tokens: Tokens): string {
    return this.#seal.seal(JSON.stringify(tokens), contextOf(key, 'sealed_tokens'));
  }

  openSecret(record: ConnectionRecord): string | null {
    const { sealedSecret } = record;
    return sealedSecret === null ? null : this.#seal.open(sealedSecret, contextOf(record, 'sealed_secret'));
  }

  openTokens(record: ConnectionRecord): Tokens | null {
    const { sealedTokens } = record;
    if (sealedTokens === null) return null;
    return Tokens.parse(JSON.parse(this.#seal.open(sealedTokens, contextOf(record, 'sealed_tokens'))));
  }
}

function contextOf({ namespaceId, name }: ConnectionKey, column: Column): string {
  return sealedColumns('connection').context({ namespace_id: namespaceId, name }, column);
}
