"""The loops that train boosted trees and forests, and what follows them."""
