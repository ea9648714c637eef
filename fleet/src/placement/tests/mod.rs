mod cuts;
mod profiles;
mod scripts;
mod sim;
mod unit_files;
