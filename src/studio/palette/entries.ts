import { call } from '../api/call.ts';
import { NAVIGATION } from '../app/navigation.ts';
import { signOut } from '../app/session.ts';
import { changeTheme } from '../app/theme.ts';

/** An entry of the palette: a screen, a thing with a name or an id, or an action. */
export interface Entry {
  id: string;
  kind: string;
  label: string;
  /** Further text in which words are searched. */
  hint?: string;
  /** Address to open, or the action to run. */
  target: string | (() => void);
}

/** Maximum number of hosts and clients that are loaded for the palette. */
const MAX_NAMES = 200;
/** Shorter texts are not indexed. */
const MIN_SEARCH_CHARS = 3;

/** Screens that are parts of another one. */
const PARTS = [
  { path: '/studio/alerts?view=rules', label: 'Alert rules' },
  { path: '/studio/alerts?view=channels', label: 'Alert channels' },
  { path: '/studio/alerts?view=silences', label: 'Silences' },
];

export const SCREENS: readonly Entry[] = [...NAVIGATION.flatMap(({ items }) => items), ...PARTS].map(
  ({ path, label }) => ({ id: `screen ${path}`, kind: 'Screen', label, target: path }),
);

export const ACTIONS: readonly Entry[] = [
  action('Set up a webhook', '/studio/webhooks?setup=1'),
  action('Install a plugin', '/studio/plugins?install=1'),
  action('New endpoint', '/studio/endpoints?new=endpoint'),
  action('New portal link for a customer', '/studio/endpoints?new=link'),
  action('New message', '/studio/messages?new=message'),
  action('New alert rule', '/studio/alerts?view=rules&new=rule'),
  action('New alert channel', '/studio/alerts?view=channels&new=channel'),
  action('New silence', '/studio/alerts?view=silences&new=silence'),
  action('New secret', '/studio/secrets?new=secret'),
  action('New connection', '/studio/connections?new=connection'),
  action('Show dead letters', '/studio/messages?status=dead'),
  action('Show disabled endpoints', '/studio/endpoints?disabled=true'),
  action('Show firing alerts', '/studio/alerts?state=firing'),
  action('Change the theme', changeTheme),
  action('Sign out', () => void signOut()),
];

function action(label: string, target: Entry['target']): Entry {
  return { id: `action ${label}`, kind: 'Action', label, target };
}

/** Loads the names of plugins, webhooks and other objects. Lists that fail, or that the caller may not read, are omitted. */
export async function loadNames(): Promise<Entry[]> {
  const lists = await Promise.allSettled([
    call('listPlugins', {}).then(({ items }) =>
      items.map(({ id }) => entry('Plugin', id, `/studio/plugins/${encodeURIComponent(id)}`)),
    ),
    call('listCommands', {}).then(({ items }) =>
      items.map(({ pluginId, id, description }) => ({
        ...entry(
          'Command',
          `${pluginId} ${id}`,
          `/studio/plugins/${encodeURIComponent(pluginId)}?command=${encodeURIComponent(id)}`,
        ),
        hint: description ?? '',
      })),
    ),
    call('listWorkflows', {}).then(({ items }) =>
      items.map(({ id, name }) => ({
        ...entry('Workflow', id, `/studio/runs?workflowId=${encodeURIComponent(id)}`),
        hint: name ?? '',
      })),
    ),
    call('listWebhooks', {}).then(({ items }) =>
      items.map(({ pluginId, event }) =>
        entry('Webhook', `${pluginId}/${event}`, `/studio/webhooks?${webhookQuery(pluginId, event)}`),
      ),
    ),
    call('listSchedules', {}).then(({ items }) =>
      items.map(({ id, cron }) => ({ ...entry('Schedule', id, '/studio/schedules'), hint: cron })),
    ),
    call('listHosts', { query: { limit: MAX_NAMES } }).then(({ items }) =>
      items.map(({ hostId, name }) => ({ ...entry('Host', name, '/studio/hosts', hostId), hint: hostId })),
    ),
    call('listClients', { query: { limit: MAX_NAMES } }).then(({ items }) =>
      items.map(({ clientId, name }) => ({
        ...entry('Client', name, '/studio/access', clientId),
        hint: clientId,
      })),
    ),
    call('listEndpoints', { query: { limit: MAX_NAMES } }).then(({ items }) =>
      items.map(({ id, url, description }) => ({
        ...entry('Endpoint', url, `/studio/endpoints/${id}`, id),
        hint: `${id} ${description ?? ''}`,
      })),
    ),
    call('listConnections', {}).then(({ items }) =>
      items.map(({ name, provider }) => ({
        ...entry('Connection', name, `/studio/connections?${new URLSearchParams({ name })}`),
        hint: provider ?? '',
      })),
    ),
    call('listAlertRules', { query: { limit: MAX_NAMES } }).then(({ items }) =>
      items.map(({ name, namespaceId, kind }) => ({
        ...entry('Alert rule', name, '/studio/alerts?view=rules', `${namespaceId} ${name}`),
        hint: kind,
      })),
    ),
    call('listAlertChannels', { query: { limit: MAX_NAMES } }).then(({ items }) =>
      items.map(({ name, namespaceId, type }) => ({
        ...entry('Alert channel', name, '/studio/alerts?view=channels', `${namespaceId} ${name}`),
        hint: type,
      })),
    ),
    call('listSecrets', {}).then(({ items }) =>
      items.map(({ name }) => entry('Secret', name, '/studio/secrets')),
    ),
  ]);
  return lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
}

function webhookQuery(pluginId: string, event: string): URLSearchParams {
  return new URLSearchParams({ pluginId, event });
}

function entry(kind: string, label: string, target: string, id = label): Entry {
  return { id: `${kind} ${id}`, kind, label, target };
}

const DELIVERY_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const RUN_ID = /^(?:run|job)_[0-9a-f]{32}$/;
const TRACE_ID = /^[0-9a-f]{32}$/;
const LABEL = /^[^:\s]+:\S/;

/** Kinds of objects whose ids have a prefix, and the folder of their screens. */
const PREFIXED: ReadonlyArray<readonly [pattern: RegExp, kind: string, folder: string]> = [
  [/^ep_[0-9a-z]{26}$/, 'Endpoint', 'endpoints'],
  [/^msg_[0-9a-z]{26}$/, 'Message', 'messages'],
  [/^alert_[0-9a-z]{8,64}$/, 'Alert', 'alerts'],
];

/** Returns the screens of the object with this id, such as a delivery, run or trace. Returns none for any other text. */
export function idEntries(text: string): Entry[] {
  const prefixed = PREFIXED.find(([pattern]) => pattern.test(text));
  if (prefixed) return [entry(prefixed[1], text, `/studio/${prefixed[2]}/${text}`)];
  if (DELIVERY_ID.test(text)) return [entry('Delivery', text, `/studio/deliveries/${text}`)];
  if (RUN_ID.test(text))
    return [entry(text.startsWith('job_') ? 'Job' : 'Run', text, `/studio/runs/${text}`)];
  if (!TRACE_ID.test(text)) return [];
  return [
    entry('Trace', text, `/studio/traces/${text}`),
    entry('Trace', `Logs of trace ${text}`, `/studio/logs?traceId=${text}`),
  ];
}

/** Returns searches for a text in lists that are not loaded. */
export function searchesFor(text: string): Entry[] {
  if (text.length < MIN_SEARCH_CHARS) return [];
  const query = encodeURIComponent(text);
  const label = LABEL.test(text)
    ? [entry('Search', `Runs with the label ${text}`, `/studio/runs?label=${query}`)]
    : [];
  return [
    ...label,
    entry('Search', `Runs with “${text}” in their input`, `/studio/runs?search=${query}`),
    entry('Search', `Deliveries that contain “${text}”`, `/studio/deliveries?search=${query}`),
    entry('Search', `Log lines with “${text}”`, `/studio/logs?search=${query}`),
  ];
}

/** Returns the entries that contain all words of the text. Matches of whole words come first. */
export function matching(entries: readonly Entry[], text: string): Entry[] {
  const words = wordsOf(text);
  return entries
    .map((entry) => ({ entry, score: scoreOf(entry, words) }))
    .filter(({ score }) => score >= 0)
    .sort((a, b) => b.score - a.score)
    .map(({ entry }) => entry);
}

function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[\s/]+/)
    .filter((word) => word !== '');
}

/** Returns how well an entry matches the words. Negative if it lacks a word. */
function scoreOf({ kind, label, hint = '' }: Entry, words: readonly string[]): number {
  const all = `${kind} ${label} ${hint}`.toLowerCase();
  if (!words.every((word) => all.includes(word))) return -1;
  const own = wordsOf(`${kind} ${label}`);
  return words.reduce((score, word) => {
    if (own.includes(word)) return score + 2;
    return own.some((each) => each.startsWith(word)) ? score + 1 : score;
  }, 0);
}
