import { snsMessageOf } from './aws-sns-message.ts';

/** URL that confirms a subscription, or the reason why there is none. */
export type Confirmation =
  | { url: string; fault?: undefined }
  | { url?: undefined; fault: 'not_a_confirmation' | 'url_not_allowed' };

const NOT_A_CONFIRMATION = { fault: 'not_a_confirmation' } as const;
const URL_NOT_ALLOWED = { fault: 'url_not_allowed' } as const;
const CONFIRM_PARAMETERS = 3;

/**
 * Returns the URL that confirms the subscription of a verified message. It is on the host of SNS in the region of the
 * topic, and contains nothing but the topic and the token of the message.
 */
export function confirmationUrlOf(message: unknown): Confirmation {
  const sns = snsMessageOf(message);
  if (sns?.type !== 'SubscriptionConfirmation' || !sns.token || !sns.subscribeUrl) return NOT_A_CONFIRMATION;
  const url = URL.parse(sns.subscribeUrl);
  if (url?.origin !== `https://${sns.host}` || url.pathname !== '/') return URL_NOT_ALLOWED;
  if (url.username !== '' || url.password !== '' || url.hash !== '') return URL_NOT_ALLOWED;
  const { searchParams } = url;
  const isConfirmation =
    searchParams.size === CONFIRM_PARAMETERS &&
    searchParams.get('Action') === 'ConfirmSubscription' &&
    searchParams.get('TopicArn') === sns.topicArn &&
    searchParams.get('Token') === sns.token;
  return isConfirmation ? { url: url.href } : URL_NOT_ALLOWED;
}
