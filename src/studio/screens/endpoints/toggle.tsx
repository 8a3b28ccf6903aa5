import type { OutgoingEndpoint } from '../../../contracts/message-records.ts';
import { call } from '../../api/call.ts';
import type { Action } from '../../ui/use-action.ts';

interface ToggleProps {
  endpoint: OutgoingEndpoint;
  action: Action;
  reload: () => void;
}

/** Disables or enables an endpoint. */
export function Toggle({ endpoint: { id, url, disabled }, action, reload }: ToggleProps) {
  const toggle = async (): Promise<string> => {
    await call('updateEndpoint', { params: { id }, body: { disabled: !disabled } });
    reload();
    return disabled ? `${url} gets messages again.` : `${url} gets no messages until it is enabled.`;
  };
  return (
    <button
      type="button"
      aria-label={`${disabled ? 'Enable' : 'Disable'} ${url}`}
      disabled={action.isBusy}
      onClick={() => action.run(toggle)}
    >
      {disabled ? 'Enable' : 'Disable'}
    </button>
  );
}
