/** Hosts of AWS SNS, such as `sns.eu-central-1.amazonaws.com`. */
const HOST = /^sns\.[a-z]{2}(?:-[a-z]+){1,3}-\d{1,2}\.amazonaws\.com(?:\.cn)?$/;

/**
 * Returns the URL that confirms a subscription, or undefined if the message has none of Amazon's. The URL is taken from
 * an authenticated message, and restricted all the same, because the gateway calls it from its own network.
 */
export function confirmationUrl(message: unknown): string | undefined {
  const text = (message as { SubscribeURL?: unknown } | null | undefined)?.SubscribeURL;
  if (typeof text !== 'string' || text.length > 2048 || !URL.canParse(text)) return undefined;
  const { protocol, hostname, port, username, password, searchParams, href } = new URL(text);
  const isAmazon = protocol === 'https:' && port === '' && HOST.test(hostname);
  const isPlain = username === '' && password === '';
  return isAmazon && isPlain && searchParams.get('Action') === 'ConfirmSubscription' ? href : undefined;
}
