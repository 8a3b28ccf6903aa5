import { CONNECTION_PROVIDER_IDS, type ConnectionProvider } from '../../../../../contracts/index.ts';
import { CATALOGUE } from './catalogue.ts';

/** Returns the catalogue as the API shows it. */
export function connectionProviders(): ConnectionProvider[] {
  return CONNECTION_PROVIDER_IDS.map((id) => {
    const { name, registerUrl, scopes, variables, pkce, refreshes, revocationUrl, notes } = CATALOGUE[id];
    return {
      ...{ id, name, registerUrl, pkce, refreshes },
      scopes: [...scopes],
      variables: { ...variables },
      revokes: revocationUrl !== undefined,
      notes: [...(notes ?? [])],
    };
  });
}
