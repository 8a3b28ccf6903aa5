import type { ProviderId } from '../../../src/contracts/index.ts';

/** A delivery that a provider's own library or documentation made. */
export interface Vector {
  provider: ProviderId;
  /** Package and version, or the page, that the delivery comes from. The platform's own signer makes none. */
  source: string;
  /** The secret or public key, as an operator would provision it. */
  secret: string;
  /** Time of receipt in epoch ms. Only schemes with a signed time need a certain one. */
  at?: number;
  /** Texts that the scheme downloads, by URL. */
  fetched?: Readonly<Record<string, string>>;
  request: {
    method?: 'POST' | 'GET' | 'PUT';
    /** Absolute URL as the sender called it. Default: a URL of the tests. */
    url?: string;
    headers: Readonly<Record<string, string>>;
    body: string | Buffer;
  };
}

/** Vectors of one provider. A function, because the libraries that make them are loaded only by their test. */
export type Vectors = () => Promise<readonly Vector[]>;
