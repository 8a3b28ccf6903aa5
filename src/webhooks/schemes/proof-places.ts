import type { RequestPlace } from '../../contracts/index.ts';
import type { ProviderAuth } from '../providers/index.ts';

/** Places of a request that contain a secret or a signature, whose values are masked in records. */
export interface ProofPlaces {
  /** Header names in lower case. */
  headers: ReadonlySet<string>;
  queries: ReadonlySet<string>;
}

export function proofPlacesOf(auths: readonly ProviderAuth[]): ProofPlaces {
  const places = auths.flatMap(placesOf);
  return {
    headers: new Set(places.flatMap(({ header }) => (header === undefined ? [] : [header.toLowerCase()]))),
    queries: new Set(places.flatMap(({ query }) => (query === undefined ? [] : [query]))),
  };
}

function placesOf(auth: ProviderAuth): RequestPlace[] {
  switch (auth.type) {
    case 'signature':
      return [auth.signature, ...(auth.signature.alternatives ?? [])];
    case 'token':
      return [auth.at];
    case 'jwt':
      return [{ header: auth.header }];
    default:
      return [{ header: 'authorization' }];
  }
}
