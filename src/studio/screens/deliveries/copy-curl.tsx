import { useState } from 'preact/hooks';
import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { shellWord } from '../../ui/shell-word.ts';

/** Headers that curl sets itself. */
const OWN = new Set(['host', 'content-length', 'connection', 'accept-encoding', 'transfer-encoding']);

/** Button that copies the delivery as a `curl` command. Masked headers stay masked. */
export function CopyCurl({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(curlOf(delivery));
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {isCopied ? 'Copied' : 'Copy as curl'}
    </button>
  );
}

function curlOf({
  pluginId,
  event,
  instanceId,
  headers,
  body,
  bodyEncoding,
}: WebhookDeliveryDetails): string {
  const path = ['webhooks', pluginId, event, ...(instanceId ? [instanceId] : [])]
    .map(encodeURIComponent)
    .join('/');
  const kept = headers.filter(([name]) => !OWN.has(name.toLowerCase()));
  const flags = kept.map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`);
  const url = shellWord(`${location.origin}/${path}`);
  if (body === null) return ['curl -X POST', url, ...flags].join(' \\\n  ');
  if (bodyEncoding === 'utf8')
    return ['curl', url, ...flags, `--data-binary ${shellWord(body)}`].join(' \\\n  ');
  return `base64 -d <<< ${body} | ${['curl', url, ...flags, '--data-binary @-'].join(' \\\n  ')}`;
}
