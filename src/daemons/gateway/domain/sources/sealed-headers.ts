import { MASKED_VALUE } from '../../../../kit/data/recorded-headers.ts';
import type { RecordSeal } from '../webhooks/verify/record-seal.ts';
import { URL_TOKEN_HEADER } from './source-targets.ts';

/** Pseudo-header of a record that contains the sealed original headers. No list of headers shows it. */
const SEALED = ':sealed';

type Pairs = Array<[string, string]>;

/**
 * Keeps the headers of a delivery as they were received, encrypted, in its record. Destinations forward them, so that
 * the receiver can check the signature, which the readable part of the record masks.
 */
export class SealedHeaders {
  readonly #seal: RecordSeal;

  constructor(seal: RecordSeal) {
    this.#seal = seal;
  }

  /** Returns the recorded headers with the sealed original ones. `key` is namespace and name of the source. */
  add(recorded: string, rawHeaders: readonly string[], key: readonly [string, string]): string {
    const original: Pairs = [];
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (rawHeaders[i]!.toLowerCase() !== URL_TOKEN_HEADER)
        original.push([rawHeaders[i]!, rawHeaders[i + 1]!]);
    }
    const sealed = this.#seal.seal(JSON.stringify(original), contextOf(key));
    return JSON.stringify([...(JSON.parse(recorded) as Pairs), [SEALED, sealed]]);
  }

  /** Returns the original headers of a record, or the masked ones if the record has no sealed headers. */
  async read(recorded: string, key: readonly [string, string]): Promise<Pairs> {
    const pairs = JSON.parse(recorded) as Pairs;
    const sealed = pairs.find(([name]) => name === SEALED)?.[1];
    if (sealed !== undefined) return JSON.parse(await this.#seal.open(sealed, contextOf(key))) as Pairs;
    return pairs.filter(([name, value]) => !name.startsWith(':') && value !== MASKED_VALUE);
  }
}

/** Binds the headers to their source, so that they cannot be decrypted in the record of another tenant. */
function contextOf([namespaceId, name]: readonly [string, string]): string {
  return JSON.stringify(['source headers', namespaceId, name]);
}
