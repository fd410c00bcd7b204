/** Opens the data folder that its argument names and keeps it until it is killed. */
import { openDataFolder } from '#infra/data-folder/index.ts';

await openDataFolder(process.argv[2] ?? '');
process.once('disconnect', () => process.exit(0));
process.send?.('open');
