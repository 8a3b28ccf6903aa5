import type { BodyFormat, ProviderId } from '../../../src/contracts/index.ts';

/** A delivery from a provider's library or documentation, or, as `source` says, from a third party's library. */
export interface Vector {
  provider: ProviderId;
  /** Package and version, or the page, that the delivery comes from. The platform's own signer makes none. */
  source: string;
  /** The secret or public key, as an operator would provision it. */
  secret: string;
  /** Time of receipt in epoch ms. Only schemes with a signed time need a certain one. */
  at?: number;
  /** Format of the body that the webhook declares, if the body is not one of the entry's format. */
  format?: BodyFormat;
  request: {
    method?: 'POST' | 'GET' | 'PUT';
    /** Absolute URL as the sender called it. Default: a URL of the tests. */
    url?: string;
    headers: Readonly<Record<string, string>>;
    body: string | Buffer;
  };
  /** Texts that the check fetches from the sender's servers, by URL: key sets and certificates. */
  fetches?: Readonly<Record<string, string>>;
}

/** URL of the webhook on the gateway under test. Senders that sign the URL must sign this one. */
export interface VectorTarget {
  url: string;
}

/** Vectors of one provider. A function, because the libraries that make them are loaded only by their test. */
export type Vectors = (target: VectorTarget) => Promise<readonly Vector[]>;
