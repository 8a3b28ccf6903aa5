/** What each noun is about, for `svc --help`; its verbs stand below. */
export const NOUNS: Readonly<Record<string, string>> = {
  agent: 'Make this machine a host that runs plugin code',
  clients: 'Credentials that programs log in with',
  config: 'The configuration in effect',
  events: 'What happened, as analytics events',
  hosts: 'Machines that run plugin code for this platform',
  jobs: 'Background jobs of plugins',
  plugins: 'Install, develop and look after plugins',
  schedules: 'When workflows start by themselves',
  service: 'Keep the platform running by the system itself',
  tokens: 'Access tokens minted by hand',
  webhooks: 'Secrets, deliveries and why one was refused',
  workflows: 'Durable workflows and their runs',
};
