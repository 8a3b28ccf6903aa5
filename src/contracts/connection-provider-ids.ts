/** Ids of the OAuth 2 providers in the catalogue. */
export const CONNECTION_PROVIDER_IDS = [
  'atlassian',
  'discord',
  'github',
  'gitlab',
  'google',
  'hubspot',
  'linear',
  'microsoft',
  'notion',
  'salesforce',
  'slack',
  'zoom',
] as const;
export type ConnectionProviderId = (typeof CONNECTION_PROVIDER_IDS)[number];
