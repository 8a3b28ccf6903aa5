/** Returns the key of the object with an uploaded file. Known from the delivery, so that no list of keys is stored. */
export function uploadKey(webhookId: string, index: number): string {
  return `webhooks/${webhookId}/${index}`;
}
