import type { WebhookProvider, WebhookProviderDetails } from '../../contracts/index.ts';
import type { Provider } from './provider.ts';

/** Returns an entry of the catalogue as lists show it. */
export function providerSummary(provider: Provider): WebhookProvider {
  const { id, name, protects, secretFrom, secretHelp, pitfalls, sendsHeaders = false, unverified } = provider;
  return {
    ...{ id, name, protects, secretFrom, secretHelp, sendsHeaders },
    ...{ pitfalls: [...pitfalls], verified: unverified === undefined },
  };
}

export function providerDetails(provider: Provider): WebhookProviderDetails {
  const { sources, checkedOn, events = [], ipAllow = [], sample, unverified } = provider;
  return {
    ...providerSummary(provider),
    ...{ sources: [...sources], checkedOn, events: [...events] },
    ...{ ipAllow: [...ipAllow], unverified: unverified ?? null },
    sample: { headers: { ...sample.headers }, body: sample.body },
  };
}
